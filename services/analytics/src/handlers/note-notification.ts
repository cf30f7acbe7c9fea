import { defineHandler } from "@herald/bus";
import { NotificationAcceptedV1, userKey } from "@herald/contracts";
import type { NoticeStore } from "../stores/notice-store.ts";

/** A notification was accepted: keep its topics, its users and its time, where it has them. */
export const noteNotification = (notices: NoticeStore) =>
  defineHandler({
    durable: "analytics-note-notifications", // renaming a durable replays its stream
    message: NotificationAcceptedV1,
    async handle({ data: { projectId, notificationId, at, sendAt, topics = [], users = [] } }) {
      if (topics.length === 0 && users.length === 0 && sendAt === undefined) return;
      await notices.put({
        _id: notificationId,
        projectId,
        topics,
        ...(users.length > 0 && { userKeys: users.map((userId) => userKey(projectId, userId)) }),
        at: new Date(sendAt ?? at),
        ...(sendAt === undefined ? {} : { sendAt: new Date(sendAt) }),
      });
    },
  });
