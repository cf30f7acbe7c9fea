import { type Bus, hasMessages, isUnsettled, oldestMessageTime } from "@herald/bus";
import {
  DeliverBatchV1,
  ExpandedV1,
  ExpandV1,
  type Lane,
  laneOf,
  type NotificationId,
  type Platform,
  type ProjectId,
} from "@herald/contracts";
import type { Claim } from "../stores/delivery-document.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";

/** What the broker still holds of a notification: a process that holds such a message goes on with the work. */
export type LiveMessages = {
  /** A page is to be expanded, or the end of the expansion to be written. */
  readonly ofExpansion: (projectId: ProjectId, id: NotificationId) => Promise<boolean>;
  /** A batch that was published before its expansion ended, at `expandedAt`. */
  readonly ofBatches: (document: NotificationRecord, expandedAt: Date) => Promise<boolean>;
  /** The message that a row was started for. */
  readonly ofClaim: (claim: Claim) => Promise<boolean>;
};

/** Leaders of two streams may tell the time a little differently. */
const skewMs = 10_000;
/** One of each stream that rows are started from. */
const platforms: readonly Platform[] = ["ios", "android", "web"];
const startingDurables = [
  "dispatch-send-groups",
  "dispatch-single-sends",
  "dispatch-drain",
  "dispatch-broadcast-ios",
  "dispatch-due",
] as const;

export const createLiveMessages = (bus: Bus): LiveMessages => ({
  ofExpansion: async (projectId, notificationId) => {
    const page = ExpandV1.subject({ projectId, notificationId, page: 0 } as ExpandV1).replace(/0$/, "*");
    // In this order: the last page is settled after the end is published.
    if (await hasMessages(bus, "PUSH_CMD", page)) return true;
    return hasMessages(bus, "PUSH_CMD", ExpandedV1.subject({ projectId, notificationId } as ExpandedV1));
  },

  ofBatches: async ({ _id, projectId, content }, expandedAt) => {
    const lane: Lane = laneOf(content.targets);
    const oldest = await Promise.all(
      platforms.map((platform) =>
        oldestMessageTime(
          bus,
          "PUSH_DELIVER",
          DeliverBatchV1.subject({ lane, platform, projectId, notificationId: _id } as DeliverBatchV1),
        ),
      ),
    );
    return oldest.some((at) => at !== undefined && at.getTime() <= expandedAt.getTime() + skewMs);
  },

  ofClaim: async (claim) => {
    const unsettled = await Promise.all(startingDurables.map((durable) => isUnsettled(bus, durable, claim)));
    return unsettled.includes(true);
  },
});
