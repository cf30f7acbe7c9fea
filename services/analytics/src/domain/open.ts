import { createHash } from "node:crypto";
import type { DeviceId, NotificationId, OutboxEvent, Platform, ProjectId } from "@herald/contracts";

/** One open of one notification on one device. */
export type Open = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly deviceId: DeviceId;
  /** Absent where the open token was of the version that did not say it. */
  readonly platform?: Platform;
  readonly openedAt: Date;
};

/** An open as one message reported it. */
export type ReportedOpen = Open & {
  /** The report that it is in: of several, the first one stored has the open. */
  readonly report: string;
};

/** What makes an open the same open, however often it is reported. */
export const openId = ({ notificationId, deviceId }: Pick<Open, "notificationId" | "deviceId">): string =>
  `${notificationId}/${deviceId}`;

/** The event of an open. Its id comes from the open alone, so that whoever publishes it again says the same fact. */
export const openedEvent = (open: Open, userId: string | null = null): OutboxEvent<"NotificationOpenedV1"> => ({
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
    at: open.openedAt.toISOString(),
  },
});
