import { createHash } from "node:crypto";
import {
  type DeviceId,
  fromTags,
  type NotificationId,
  type OutboxEvent,
  type Platform,
  type ProjectId,
} from "@herald/contracts";

/** One open of one notification on one device. */
export type Open = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly deviceId: DeviceId;
  /** Absent: not known. */
  readonly platform?: Platform;
  readonly openedAt: Date;
};

export type ReportedOpen = Open & {
  /** Id of the group of opens that reported it; if several groups did, of the group stored first. */
  readonly report: string;
};

export const openId = ({ notificationId, deviceId }: Pick<Open, "notificationId" | "deviceId">): string =>
  `${notificationId}/${deviceId}`;

/** The event id depends on the open alone, so a repeated publish has the same id. */
export const openedEvent = (
  open: Open,
  userId: string | null = null,
  tags: readonly string[] = [],
): OutboxEvent<"NotificationOpenedV1"> => ({
  id: createHash("sha256").update(openId(open)).digest("base64url"),
  event: "NotificationOpenedV1",
  subject: open.notificationId,
  at: open.openedAt,
  data: {
    project_id: open.projectId,
    notification_id: open.notificationId,
    device_id: open.deviceId,
    ...(open.platform === undefined ? {} : { platform: open.platform }),
    ...(userId === null ? {} : { user_id: userId }),
    ...fromTags(tags),
    at: open.openedAt.toISOString(),
  },
});
