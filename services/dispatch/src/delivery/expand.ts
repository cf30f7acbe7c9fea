import { type Bus, groupedPublish } from "@herald/bus";
import { ExpandV1, laneOf } from "@herald/contracts";
import type { NotificationRecord } from "../stores/notification-document.ts";

/**
 * Commands the expansion of a notification, from its first page on. Repeatable: registry partitions every page once. `repeat` makes
 * another message id, so that the stream does not drop a command that is repeated on purpose as a duplicate.
 */
export type Expand = (document: NotificationRecord, repeat?: string) => Promise<void>;

export const createExpand = (bus: Bus): Expand => {
  const publish = groupedPublish(() => bus, ExpandV1);
  return ({ _id, projectId, content, expiresAt }, repeat = "0") => {
    const data: ExpandV1 = {
      projectId,
      notificationId: _id,
      page: 0,
      fromBucket: 0,
      targets: content.targets,
      lane: laneOf(content.targets),
      expiresAt: expiresAt.toISOString(),
    };
    return publish(data, `${_id}/expand/${repeat}`);
  };
};
