import { z } from "zod";
import { DeviceId, NotificationId, ProjectId } from "../../ids.ts";
import { named, namedBody } from "../../named.ts";
import { Platform } from "../../platforms.ts";
import { PushType } from "../../push-types.ts";
import { Kind, LabelFilter } from "../../tags.ts";
import { PlannedWave, Wave } from "./local-time.ts";
import { content } from "./notification-content.ts";
import { ButtonId } from "./receipt-fields.ts";
import { OpenTotals } from "./stats.ts";

export const NotificationStatus = z
  .enum(["scheduled", "accepted", "sending", "paused", "completed", "cancelled", "expired"])
  .meta({ id: "NotificationStatus", description: "`paused` is reserved: this version never answers it" });
export type NotificationStatus = z.infer<typeof NotificationStatus>;

/** The query parameters that filter notifications. A notification must match all of them. */
export const notificationFilterQuery = {
  status: z
    .enum(NotificationStatus.exclude(["paused"]).options)
    .optional()
    .meta({ description: "Only notifications with this status" }),
  kind: Kind.optional().meta({ description: "Only notifications of this kind" }),
  label: LabelFilter.optional().meta({ description: "Notifications with this label: `<name>:<value>`" }),
  push_type: PushType.optional().meta({ description: "Notifications with this push type of Apple" }),
};
export const NotificationFilter = z.object(notificationFilterQuery);
export type NotificationFilter = z.infer<typeof NotificationFilter>;

const count = z.number().int().min(0);

export const NotificationCounts = named(
  "NotificationCounts",
  {
    devices: count,
    accepted: count,
    failed: count,
    expired: count,
    cancelled: count,
    skipped: count.default(0),
    pending: count,
    opened: count,
    receipts_asked: count
      .default(0)
      .meta({ description: "Accepted devices that were asked to report that the push arrived" }),
    received: count.default(0).meta({
      description: "Devices whose app ran with this push; not that a person saw it. May exceed `receipts_asked`",
    }),
    dismissed: count.default(0).meta({ description: "Devices whose user dismissed it; iOS: explicitly" }),
    buttons: z
      .record(z.string(), count)
      .optional()
      .meta({ description: "Opens by the button that was pressed; absent: none", examples: [{ track: 12 }] }),
  },
  {
    description: "`devices` = `accepted` + `failed` + `expired` + `cancelled` + `skipped` + `pending`, always",
    examples: [
      {
        devices: 120,
        accepted: 117,
        failed: 2,
        expired: 0,
        cancelled: 0,
        skipped: 1,
        pending: 0,
        opened: 31,
        receipts_asked: 0,
        received: 0,
        dismissed: 0,
      },
    ],
  },
);
export type NotificationCounts = z.infer<typeof NotificationCounts>;

/** The opens of a notification: their rate, the first and the last, and the time that they took. */
export const NotificationOpens = named("NotificationOpens", {
  open_rate: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .meta({ description: "`opened` / `accepted`; null before any is accepted" }),
  ...OpenTotals.shape,
});

export const Notification = named(
  "Notification",
  {
    id: NotificationId,
    status: NotificationStatus,
    ...content,
    counts: NotificationCounts,
    opens: NotificationOpens.optional().meta({ description: "At most 10 s behind; in the answers to reads alone" }),
    failures: z
      .record(z.string(), count)
      .meta({ description: "Failed devices by reason", examples: [{ unregistered: 2 }] }),
    skips: z.record(z.string(), count).default({}).meta({ description: "Skipped devices by reason" }),
    unmatched: z.array(z.string()).meta({ description: "Targets that matched no active device" }),
    schedule: z.array(Wave).optional().meta({
      description: "Its waves, the next ones as they are planned now; absent unless it is sent in waves",
    }),
    created_at: z.iso.datetime(),
    completed_at: z.iso.datetime().optional(),
  },
  {
    examples: [
      {
        id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
        status: "completed",
        title: "Your order has shipped",
        body: "It arrives tomorrow before noon.",
        targets: ["topic:news", "topic:olds"],
        link_to: "/orders/42",
        counts: {
          devices: 120,
          accepted: 117,
          failed: 2,
          expired: 0,
          cancelled: 0,
          skipped: 1,
          pending: 0,
          opened: 31,
          receipts_asked: 110,
          received: 104,
          dismissed: 12,
          buttons: { track: 9 },
        },
        opens: {
          open_rate: 0.265,
          first_opened_at: "2030-01-31T09:00:07.000Z",
          last_opened_at: "2030-01-31T18:22:41.000Z",
          time_to_open: { p50: 95, p75: 410, p90: 2_700, p99: 21_000 },
        },
        failures: { unregistered: 2 },
        skips: { moved: 1 },
        unmatched: ["topic:olds"],
        created_at: "2030-01-31T09:00:00.000Z",
        completed_at: "2030-01-31T09:00:03.000Z",
      },
    ],
  },
);
export type Notification = z.infer<typeof Notification>;

export const DeliveryStatus = z
  .enum(["pending", "accepted", "failed", "expired", "cancelled", "skipped"])
  .meta({ id: "DeliveryStatus" });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

const outcome = {
  reason: z
    .string()
    .optional()
    .meta({
      description: "Why it was not accepted: a delivery reason (/docs/errors#reasons)",
      examples: ["unregistered"],
    }),
  provider_reason: z
    .string()
    .optional()
    .meta({ description: "The provider's own words", examples: ["410 Unregistered"] }),
  provider_id: z
    .string()
    .optional()
    .meta({ description: "The provider's id of the push", examples: ["7B1F0C52-9C3E-4B7A-8F3D-2A4E5D6C7B8A"] }),
  possible_repeat: z.boolean().meta({ description: "The device may have received it twice", examples: [false] }),
};

/** What the device reported of a push. */
const reported = {
  receipt_asked: z.boolean().optional().meta({ description: "The device was asked to report the arrival; absent: no" }),
  received_at: z.iso.datetime().optional().meta({ description: "When its app ran with this push" }),
  dismissed_at: z.iso.datetime().optional(),
  opened_at: z.iso.datetime().optional(),
  button: z
    .string()
    .optional()
    .meta({ description: "The button that opened it; absent: none", examples: ["track"] }),
};

/** The result of one notification on one device. */
export const Delivery = named("Delivery", {
  device_id: DeviceId,
  platform: Platform,
  status: DeliveryStatus,
  user_id: z.string().optional().meta({ description: "The user that the device belonged to when the push was sent" }),
  ...outcome,
  attempts: count,
  at: z.iso.datetime(),
  ...reported,
});
export type Delivery = z.infer<typeof Delivery>;

/** A notification in the timeline of a device, with its result on that device. */
export const DeviceNotification = Delivery.omit({ device_id: true })
  .extend({
    notification: Notification.pick({ id: true, status: true, title: true, body: true, created_at: true }),
  })
  .meta({
    id: "DeviceNotification",
    examples: [
      {
        notification: {
          id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
          status: "completed",
          title: "Your order has shipped",
          body: "It arrives tomorrow before noon.",
          created_at: "2030-01-31T09:00:00.000Z",
        },
        platform: "ios",
        status: "accepted",
        user_id: "u_8412",
        provider_id: "7B1F0C52-9C3E-4B7A-8F3D-2A4E5D6C7B8A",
        possible_repeat: false,
        attempts: 1,
        at: "2030-01-31T09:00:01.000Z",
        opened_at: "2030-01-31T09:01:36.000Z",
      },
    ],
  });
export type DeviceNotification = z.infer<typeof DeviceNotification>;

/** One attempt to hand a notification to a provider. */
export const DeliveryAttempt = named("DeliveryAttempt", {
  attempt: z.number().int().min(1),
  at: z.iso.datetime(),
  outcome: z
    .enum([
      "accepted",
      "failed",
      "deferred",
      "unknown",
      "paused",
      "blocked",
      "delayed",
      "expired",
      "cancelled",
      "skipped",
      "sending",
    ])
    .meta({
      description:
        "`deferred` and `unknown` are tried again; `blocked`: not sent, because the provider's server fails; `delayed`: not sent, because of quiet hours; `sending`: no answer is known yet",
    }),
  until: z.iso.datetime().optional().meta({ description: "When quiet hours end that delay it; absent: none do" }),
  ...outcome,
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** The delivery trace: everything about one notification and one device, or why the device did not get it. */
export const DeliveryTrace = named(
  "DeliveryTrace",
  {
    notification: z.object({ id: NotificationId, status: NotificationStatus }),
    device: z.object({ id: DeviceId, platform: Platform, status: z.enum(["active", "inactive"]) }),
    /** The target that matched the device, as sent; absent if none did. */
    matched: z.string().optional(),
    /** `not_addressed`: no target matched the device when the notification was expanded. */
    status: z.enum(["not_addressed", "pending", "accepted", "failed", "expired", "cancelled", "skipped"]),
    user_id: z.string().optional().meta({ description: "The user that the device belonged to when the push was sent" }),
    attempts: z.array(DeliveryAttempt),
    next_attempt_at: z.iso.datetime().optional(),
    ...reported,
    explanation: z
      .array(z.string())
      .min(1)
      .meta({
        description: "What happened, in sentences, oldest first; why the device got nothing, if it did not",
        examples: [["The notification was accepted.", "The target topic:news named the device."]],
      }),
  },
  {
    examples: [
      {
        notification: { id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac", status: "completed" },
        device: { id: "dev_06bq4ghm31tz5d2ns8y7k9w0ac", platform: "ios", status: "inactive" },
        matched: "topic:news",
        status: "failed",
        attempts: [
          {
            attempt: 1,
            at: "2030-01-31T09:00:01.000Z",
            outcome: "failed",
            reason: "unregistered",
            provider_reason: "410 Unregistered",
            possible_repeat: false,
          },
        ],
        explanation: [
          "The target `topic:news` matched the device.",
          "APNs refused the push: the token is not registered.",
        ],
      },
    ],
  },
);
export type DeliveryTrace = z.infer<typeof DeliveryTrace>;

const eachSample = <Sample extends z.ZodType>(sample: Sample) => {
  const each = sample.optional();
  return z.object({ ios: each, android: each, web: each, drawn: each });
};

/** Devices that would get a notification only later. */
export const PlannedDelay = named(
  "PlannedDelay",
  {
    until: z.iso.datetime().meta({ description: "When they would get it" }),
    reason: z.string().meta({ description: "A delivery reason (/docs/errors#reasons)" }),
    devices: count,
  },
  { examples: [{ until: "2030-01-31T07:00:00.000Z", reason: "quiet-hours", devices: 12 }] },
);

/** The answer to `dry_run`: the number of devices and each platform's payload; nothing is sent or stored. */
export const DryRun = named(
  "DryRun",
  {
    dry_run: z.literal(true),
    devices: z.object({ total: count, ios: count, android: count, web: count }),
    unmatched: z.array(z.string()),
    schedule: z.array(PlannedWave).optional().meta({
      description: "The waves in which it would be sent; absent unless it would be sent in waves",
    }),
    skips: z
      .record(z.string(), count)
      .optional()
      .meta({
        description:
          "Of these devices, those that would get nothing, by reason, as they are now; absent unless the project has rules for such a send or it would be sent in waves",
        examples: [{ muted: 4 }],
      }),
    delayed: z.array(PlannedDelay).optional().meta({
      description: "Of these devices, those that quiet hours would delay at the time of the send; absent as `skips`",
    }),
    not_judged: z
      .array(z.enum(["frequency-cap"]))
      .optional()
      .meta({
        description: "Rules that apply to the send and are judged only when it is sent; absent as `skips`",
        examples: [["frequency-cap"]],
      }),
    rendered: eachSample(z.unknown()).meta({
      description:
        "One payload for each platform that has devices, with placeholders for device and open token; for a device with all capabilities. `drawn`: the message for Android apps that draw it themselves, present with receipts or buttons",
    }),
    sizes: eachSample(z.object({ bytes: count, max: count })).meta({
      description: "The size of each of these, for a device without a localization, and what its provider takes",
    }),
  },
  {
    examples: [
      {
        dry_run: true,
        devices: { total: 120, ios: 80, android: 40, web: 0 },
        unmatched: ["topic:olds"],
        rendered: {
          ios: { aps: { alert: { title: "Your order has shipped" } }, notification_id: "ntf_…", token: "…" },
        },
        sizes: { ios: { bytes: 391, max: 4_096 } },
      },
    ],
  },
);
export type DryRun = z.infer<typeof DryRun>;

/** The open token is in the payload of the push. */
const report = {
  project_id: ProjectId,
  token: z.string().min(1).max(512),
  ago: z
    .number()
    .int()
    .min(0)
    .optional()
    .meta({
      description:
        "Seconds since it happened, for a report that comes later; absent: now. At most back to the time when the push was sent",
      examples: [90],
    }),
};

/** Body of `PUT /notifications/{id}/received` and `…/dismissed`. */
export const ReportNotification = namedBody("ReportNotification", report);

/** Body of `PUT /notifications/{id}/open`. */
export const OpenNotification = namedBody("OpenNotification", {
  ...report,
  button: ButtonId.optional().meta({
    description: "The id of the button that was pressed. Another id than one of the notification's counts as none",
  }),
});
