import { createHash } from "node:crypto";
import type { DeviceId, NotificationId, OutboxEvent, Platform, ProjectId, ReceiptKind } from "@herald/contracts";
import { fromTags } from "@herald/rules";

/** What a device reports of one notification: its open, or a receipt. */
export type Report = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly deviceId: DeviceId;
  /** Absent: not known. */
  readonly platform?: Platform;
  /** Absent: an open. */
  readonly kind?: ReceiptKind;
  /** Of an open: the button that was pressed. */
  readonly button?: string;
  readonly at: Date;
};

export type GroupedReport = Report & {
  /** Id of the group that reported it; if several groups did, of the group stored first. */
  readonly report: string;
};

/** `<notification>/<device>` of an open, with `/r` or `/d` of a receipt: each counts once. */
export const reportRowId = ({
  notificationId,
  deviceId,
  kind,
}: Pick<Report, "notificationId" | "deviceId" | "kind">): string =>
  `${notificationId}/${deviceId}${kind === undefined ? "" : `/${kind[0]}`}`;

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** What dispatch knows of a report. */
export type ReportFacts = {
  /** The user of the device when the push was sent. */
  readonly userId: string | null;
  readonly tags: readonly string[];
};

/** The event id depends on the open alone, so a repeated publish has the same id. */
export const openedEvent = (
  open: Report,
  { userId, tags }: ReportFacts = { userId: null, tags: [] },
): OutboxEvent<"NotificationOpenedV1"> => ({
  id: hashOf(reportRowId(open)),
  event: "NotificationOpenedV1",
  subject: open.notificationId,
  at: open.at,
  data: {
    project_id: open.projectId,
    notification_id: open.notificationId,
    device_id: open.deviceId,
    ...(open.platform === undefined ? {} : { platform: open.platform }),
    ...(userId === null ? {} : { user_id: userId }),
    ...(open.button === undefined ? {} : { button: open.button }),
    ...fromTags(tags),
    at: open.at.toISOString(),
  },
});

const receiptEvents = { received: "NotificationReceivedV1", dismissed: "NotificationDismissedV1" } as const;

/** Receipts of one group, notification, platform and kind are one event. Its id depends on these alone. */
export const receiptEvent = (
  receipts: readonly [GroupedReport, ...GroupedReport[]],
  factsOf: (receipt: GroupedReport) => ReportFacts,
): OutboxEvent => {
  const [{ report, projectId, notificationId, platform = "web", kind = "received" }] = receipts;
  const at = new Date(Math.max(...receipts.map((one) => one.at.getTime())));
  const facts = receipts.map(factsOf);
  const users = facts.map(({ userId }) => userId);
  return {
    id: hashOf([report, notificationId, platform, kind].join("/")),
    event: receiptEvents[kind],
    subject: notificationId,
    at,
    data: {
      project_id: projectId,
      notification_id: notificationId,
      platform,
      devices: receipts.map(({ deviceId }) => deviceId),
      ...(users.some((user) => user !== null) && { users }),
      ...fromTags(facts[0]?.tags ?? []),
      at: at.toISOString(),
    },
  };
};
