import {
  firstNotificationId,
  kindTag,
  type ListRequest,
  labelFilterTag,
  type NotificationFilter,
  type PageOf,
  type ProjectId,
  userKey,
} from "@herald/contracts";
import { type Counts, findPage } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import {
  type NotificationDocument,
  type NotificationRecord,
  notificationHints,
  toRecord,
} from "./notification-document.ts";

type Status = NonNullable<NotificationFilter["status"]>;

const absent = { $exists: false } as const;
const unfinished = { "final.status": null, cancelledAt: absent } as const;

/** The documents that are shown with a status: `currentStatus` before the end, and `final.status` from then on. */
const withStatus: { readonly [Name in Status]: Filter<NotificationDocument> } = {
  scheduled: { ...unfinished, dueAt: { $exists: true } },
  accepted: { ...unfinished, dueAt: absent, expansion: "queued" },
  sending: { ...unfinished, dueAt: absent, expansion: { $ne: "queued" } },
  completed: { "final.status": "completed" },
  expired: { "final.status": "expired" },
  // One that was being sent is counted before it ends.
  cancelled: {
    "final.status": { $in: ["cancelled", null] },
    $or: [{ "final.status": "cancelled" }, { cancelledAt: { $exists: true } }],
  } as Filter<NotificationDocument>,
};

/** `userId`: those that name this user as a target. */
type Wanted = NotificationFilter & { readonly userId?: string | undefined };

/** A page of a project's notifications that fit all filters. */
export const listNotifications =
  (notifications: Collection<NotificationDocument>, counts: Counts) =>
  async (
    projectId: ProjectId,
    { status, userId, kind, label }: Wanted,
    request: ListRequest,
  ): Promise<PageOf<NotificationRecord>> => {
    const tags = [
      ...(label === undefined ? [] : [labelFilterTag(label)]),
      ...(kind === undefined ? [] : [kindTag(kind)]),
    ];
    const filter = {
      projectId,
      ...(status !== undefined && withStatus[status]),
      ...(userId !== undefined && { userKeys: userKey(projectId, userId) }),
      // A partial index serves only what says that the field exists.
      ...(tags.length > 0 && { tags: { $exists: true, $all: tags } }),
    } as Filter<NotificationDocument>;
    const hints = notificationHints;
    const byTag = tags.length > 0 ? hints.tags : undefined;
    const byStatus = status === undefined ? undefined : hints.status;
    const hint = userId === undefined ? (byTag ?? byStatus ?? hints.list) : hints.users;
    const found = await findPage(notifications, { filter, hint, firstId: firstNotificationId, request, counts });
    return { ...found, data: found.data.map(toRecord) };
  };
