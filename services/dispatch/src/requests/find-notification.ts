import { type Bus, lastMessage } from "@herald/bus";
import { idTime, type NotificationId, type ProjectId, SendGroupV1, SendV1, sendGroupOf } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

const dayMs = 86_400_000;

/** Where an accepted notification is: in the database, or still in the stream. */
export type Place = { readonly document: NotificationRecord } | { readonly send: SendV1 };

export type FindNotification = (projectId: ProjectId, id: NotificationId) => Promise<Place>;

/**
 * Database, then both streams, then the database again: whatever way it goes meanwhile, an id that was given out is found.
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
    const subject = SendV1.subject({ projectId, notificationId } as SendV1);
    const groupId = sendGroupOf(notificationId);
    const [alone, group] = await Promise.all([
      lastMessage(bus, "PUSH_CMD", subject, SendV1),
      lastMessage(bus, "PUSH_SEND", SendGroupV1.subject({ groupId } as SendGroupV1), SendGroupV1),
    ]);
    const grouped = group?.data.sends.find((one) => one.notificationId === notificationId);
    // The group is of many projects: its id is no secret of any.
    const send = alone?.data ?? (grouped?.projectId === projectId ? grouped : undefined);
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
