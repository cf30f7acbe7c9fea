import { type Bus, lastMessage } from "@herald/bus";
import {
  idTime,
  type NotificationId,
  type ProjectId,
  SendGroupV1,
  SendOneV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

const dayMs = 86_400_000;

/** Where an accepted notification is: in the database, or still in the stream. */
export type Place = { readonly document: NotificationRecord } | { readonly send: SendV1 };

export type FindNotification = (projectId: ProjectId, id: NotificationId) => Promise<Place>;

/**
 * Database, then all messages that may hold it, then the database again: whatever way it goes meanwhile, an id that was given out is found.
 * Throws HeraldError `notification-gone` for an id so old that its notification may have been removed, `notification-not-found` for
 * any other.
 */
export const createFindNotification =
  (
    bus: Bus,
    notifications: Pick<NotificationStore, "get">,
    { keepMs, now }: { readonly keepMs: number; readonly now: () => Date },
  ): FindNotification =>
  async (projectId, notificationId) => {
    const stored = await notifications.get(projectId, notificationId);
    if (stored) return { document: stored };
    const id = { projectId, notificationId };
    const groupId = sendGroupOf(notificationId);
    const [large, group, repeated] = await Promise.all([
      lastMessage(bus, "PUSH_CMD", SendV1.subject(id as SendV1), SendV1),
      lastMessage(bus, "PUSH_SEND", SendGroupV1.subject({ groupId } as SendGroupV1), SendGroupV1),
      lastMessage(bus, "PUSH_SEND", SendOneV1.subject(id as SendOneV1), SendOneV1),
    ]);
    // Small sends are in subjects without their project: an id that another project guesses finds nothing.
    const small = [repeated?.data, ...(group?.data.sends ?? [])].find(
      (one) => one?.notificationId === notificationId && one.projectId === projectId,
    );
    const send = large?.data ?? small;
    if (send) return { send };
    const document = await notifications.get(projectId, notificationId);
    if (document) return { document };
    // The id says when it was made, so nothing has to be kept of what was removed.
    if (now().getTime() - idTime(notificationId).getTime() > keepMs)
      throw new HeraldError(
        "notification-gone",
        `notifications are kept for ${Math.floor(keepMs / dayMs)} days after their end; ${notificationId} is older`,
      );
    throw new HeraldError("notification-not-found", `the project has no notification ${notificationId}`);
  };
