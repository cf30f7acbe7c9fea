import { z } from "zod";
import { NotificationId } from "../../ids.ts";
import { named } from "../../named.ts";
import { Platform } from "../../platforms.ts";
import { PushType } from "../../push-types.ts";
import { Kind, LabelFilter, type Tag } from "../../tags.ts";
import { UserId } from "../../users.ts";
import { TimeZone } from "./local-time.ts";
import { Instant } from "./pagination.ts";
import { TopicName } from "./topics.ts";

const dayMs = 86_400_000;
export const statsIntervalMs = { hour: 3_600_000, day: dayMs } as const;
/** The maximum that a chart can show: six weeks by hour, or nearly three years by day. */
export const maxStatsIntervals = 1_000;

const By = z.string().regex(/^(platform|kind|push_type|topic|label:[a-z0-9_]{1,32})$/, {
  error: "must be `platform`, `kind`, `push_type`, `topic` or `label:<name>`",
});

/** The query of `GET /stats`; all optional. */
export const StatsQuery = z.strictObject({
  from: Instant.optional().meta({ description: "Start; absent: 24 hours before `to`" }),
  to: Instant.optional().meta({ description: "End; absent: now" }),
  interval: z
    .enum(["hour", "day"], { error: "must be `hour` or `day`" })
    .optional()
    .meta({ description: "Length of the intervals of `series`" }),
  time_zone: TimeZone.optional().meta({
    description: "Where days and hours begin: an IANA time zone; absent: UTC",
    examples: ["Europe/Berlin"],
  }),
  notification: NotificationId.optional().meta({ description: "One notification" }),
  topic: TopicName.optional().meta({ description: "Notifications that named this topic as a target" }),
  user: UserId.optional().meta({ description: "Notifications that named this user as a target" }),
  kind: Kind.optional().meta({ description: "Notifications of this kind" }),
  label: LabelFilter.optional().meta({ description: "Notifications with this label: `<name>:<value>`" }),
  push_type: PushType.optional().meta({ description: "Notifications with this push type" }),
  platform: Platform.optional().meta({
    description: "Deliveries and opens of one platform",
  }),
  by: By.optional().meta({
    description: "Adds `groups`: the totals of each platform, kind, push type, topic or value of a label",
    examples: ["label:campaign"],
  }),
});
export type StatsQuery = z.infer<typeof StatsQuery>;

/** A request to analytics. The range is `from` ≤ t < `to`; analytics widens it to whole intervals. */
export const StatsRequest = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    interval: z.enum(["hour", "day"]),
    timeZone: TimeZone,
    notificationId: NotificationId.optional(),
    topic: TopicName.optional(),
    userId: UserId.optional(),
    platform: Platform.optional(),
    tag: z.custom<Tag>((tag) => typeof tag === "string").optional(),
    by: By.optional(),
  })
  .refine(
    ({ from, to, interval }) => Date.parse(to) - Date.parse(from) <= maxStatsIntervals * statsIntervalMs[interval],
    `at most ${maxStatsIntervals} intervals may lie between \`from\` and \`to\``,
  );
export type StatsRequest = z.infer<typeof StatsRequest>;

const count = z.number().int().min(0);
const figures = {
  sent: count.meta({ description: "Devices whose provider accepted" }),
  failed: count.meta({ description: "Devices that failed; expired and cancelled ones are not among them" }),
  skipped: count.default(0).meta({ description: "Devices that got nothing because of a rule, such as a cap" }),
  opened: count.meta({ description: "Devices that opened" }),
  receipts_asked: count.default(0).meta({ description: "Devices of `sent` that were asked for a receipt" }),
  received: count.default(0).meta({ description: "Devices that reported the arrival" }),
  dismissed: count.default(0).meta({ description: "Devices whose user dismissed it" }),
  open_rate: z
    .number()
    .min(0)
    .nullable()
    .meta({ description: "`opened` / `sent`; null where nothing was sent, above 1 where earlier sends were opened" }),
};
const seconds = z.number().min(0);

/** Figures about all opens of one notification, at most 10 s behind. */
export const OpenTotals = named("OpenTotals", {
  first_opened_at: z.iso.datetime().optional(),
  last_opened_at: z.iso.datetime().optional(),
  time_to_open: z.object({ p50: seconds, p75: seconds, p90: seconds, p99: seconds }).optional().meta({
    description: "Seconds from acceptance or `send_at` to the open, by percentile and within 3 %; all opens",
  }),
});
export type OpenTotals = z.infer<typeof OpenTotals>;

/** The maximum that a table can show; further groups are added up. */
export const maxStatsGroups = 1_000;

/** Answer of `GET /stats`. */
export const Stats = named(
  "Stats",
  {
    from: z.iso.datetime().meta({ description: "Start of the first interval" }),
    to: z.iso.datetime().meta({ description: "End of the last interval" }),
    interval: z.enum(["hour", "day"]),
    time_zone: z.string(),
    series: z.array(z.object({ at: z.iso.datetime().meta({ description: "Start of the interval" }), ...figures })),
    totals: z.object({
      ...figures,
      failures: z.record(z.string(), count).meta({ description: "`failed` by reason" }),
      skips: z.record(z.string(), count).default({}).meta({ description: "`skipped` by reason" }),
    }),
    groups: z
      .array(z.object({ value: z.string(), ...figures }))
      .optional()
      .meta({
        description: `With \`by\`: totals of the range, most sent first; at most ${maxStatsGroups}. A notification without the label or kind is in none, and one to two topics is in both`,
        examples: [[{ value: "spring", sent: 117, failed: 2, opened: 31, open_rate: 0.265 }]],
      }),
    other: z
      .object({ ...figures, values: z.array(z.string()) })
      .optional()
      .meta({
        description:
          "With `by`: the values beyond the limit, counted together. `values` names up to 100 of them. A month has statistics of the first 1,000 kinds, 100 labels, and 1,000 values of each label",
      }),
    limit_reached: z.literal(true).optional().meta({
      description:
        "The kind or label that was asked for has no statistics of its own in part of the range: it is beyond the limit",
    }),
    notification: z
      .object({ id: NotificationId, ...OpenTotals.shape })
      .optional()
      .meta({ description: "With `notification`: what is known of all its opens, whatever the range" }),
  },
  {
    examples: [
      {
        from: "2030-01-31T08:00:00.000Z",
        to: "2030-01-31T10:00:00.000Z",
        interval: "hour",
        time_zone: "UTC",
        series: [
          { at: "2030-01-31T08:00:00.000Z", sent: 0, failed: 0, opened: 0, open_rate: null },
          { at: "2030-01-31T09:00:00.000Z", sent: 117, failed: 2, opened: 31, open_rate: 0.265 },
        ],
        totals: { sent: 117, failed: 2, opened: 31, open_rate: 0.265, failures: { unregistered: 2 } },
      },
    ],
  },
);
export type Stats = z.infer<typeof Stats>;
