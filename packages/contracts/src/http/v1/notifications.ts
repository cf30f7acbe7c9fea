import { z } from "zod";
import { NotificationId } from "../../ids.ts";
import { named } from "../../named.ts";
import { PushType } from "../../push-types.ts";
import { Kind, LabelFilter } from "../../tags.ts";
import { Approval } from "./approval.ts";
import { Wave } from "./local-time.ts";
import { content } from "./notification-content.ts";
import { listQuery } from "./pagination.ts";
import { Pause } from "./pause.ts";
import { RolloutState } from "./rollout.ts";
import { OpenTotals } from "./stats.ts";

export const NotificationStatus = z
  .enum(["proposed", "scheduled", "accepted", "sending", "paused", "completed", "cancelled", "expired"])
  .meta({
    id: "NotificationStatus",
    description:
      "`proposed`: it waits for an operator's approval. `paused`: it was paused itself; while its project is paused, it keeps the status that it has",
  });
export type NotificationStatus = z.infer<typeof NotificationStatus>;

/** The query parameters that filter notifications. A notification must match all of them. */
export const notificationFilterQuery = {
  status: z.enum(NotificationStatus.options).optional().meta({ description: "Only notifications with this status" }),
  kind: Kind.optional().meta({ description: "Only notifications of this kind" }),
  label: LabelFilter.optional().meta({ description: "Notifications with this label: `<name>:<value>`" }),
  push_type: PushType.optional().meta({ description: "Notifications with this push type of Apple" }),
};
export const NotificationFilter = z.object(notificationFilterQuery);
export type NotificationFilter = z.infer<typeof NotificationFilter>;
export const NotificationListQuery = z.strictObject({ ...listQuery, ...notificationFilterQuery });

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
    rollout: RolloutState.optional().meta({ description: "Absent: it reaches all devices at once" }),
    approval: Approval.optional().meta({ description: "Absent: it needs none" }),
    paused: Pause.optional().meta({ description: "Absent: it is not paused" }),
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
