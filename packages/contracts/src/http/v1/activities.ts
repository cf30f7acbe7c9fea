import { z } from "zod";
import { ActivityAlert, ActivityAttributes, ActivityId, ContentState } from "../../activity-push.ts";
import { NotificationId } from "../../ids.ts";
import { named, namedBody, withProblems } from "../../named.ts";
import { ApnsEnvironment, AppId } from "../../platforms.ts";
import { PushName } from "../../push-types.ts";
import { Kind, Labels } from "../../tags.ts";
import { NewTargets, TargetEntry, targetList } from "./notification-limits.ts";

/** The limits of Live Activities. Apple ends one after eight hours, and removes it from the screen four hours later. */
export const activityLimits = {
  /** `attributes` and `content_state` together, as JSON. */
  stateBytes: 4_096,
  targets: 100,
  recordBytes: 16_384,
  /** Of a project, at a time. */
  active: 1_000,
  /** Of a project's records, which are kept for {@link keptMs}. */
  projectBytes: 64 * 1_048_576,
  longestMs: 8 * 3_600_000,
  dismissMs: 4 * 3_600_000,
  keptMs: 14 * 3_600_000,
  /** One version in this time, and `burst` at once. */
  versionMs: 1_000,
  burst: 5,
} as const;

const time = z.iso.datetime({
  offset: true,
  error: "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00+01:00",
});
const staleAt = time.optional().meta({ description: "When the state is out of date: the app may show it so" });
const relevance = z
  .number()
  .min(0)
  .max(1_000_000)
  .optional()
  .meta({ description: "Which of the app's activities iOS shows first: the highest", examples: [100] });
const priority = z.enum(["high", "normal"]).optional().meta({
  description:
    "`high` (`apns-priority` 10) for a start, an end and an alert, else `normal` (5), which does not count towards Apple's budget",
});

const fixed = {
  attributes_type: PushName.meta({
    description: "The name of the app's `ActivityAttributes`",
    examples: ["OrderAttributes"],
  }),
  attributes: ActivityAttributes,
  start: z.boolean().default(true).meta({
    description:
      "True: starts the activity on the devices that have a token `liveactivity/<attributes_type>`. False: the app starts it",
  }),
  app: AppId.optional().meta({ description: "Only devices that name this app" }),
  via: z.literal("channel").optional().meta({
    description:
      "Devices whose start token says `channels` follow a broadcast channel of Apple: a new state is one request for all of them. The others have tokens",
  }),
  kind: Kind.optional(),
  labels: Labels.optional(),
};
const state = {
  content_state: ContentState,
  stale_at: staleAt,
  relevance,
  priority,
};

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

type Stated = { readonly attributes?: unknown; readonly content_state?: unknown };
const sizeProblems = ({ attributes, content_state }: Stated) => {
  const bytes = bytesOf(attributes) + bytesOf(content_state);
  if (bytes <= activityLimits.stateBytes) return [];
  const message = `has, with \`attributes\`, ${bytes} bytes of JSON, and at most ${activityLimits.stateBytes} are accepted`;
  return [{ path: ["content_state"], message }];
};

const newActivity = z
  .strictObject({
    ...fixed,
    ...state,
    targets: NewTargets.refine(
      (targets) => targets.length <= activityLimits.targets,
      `at most ${activityLimits.targets} targets are accepted; a topic may have many devices`,
    ),
    alert: ActivityAlert.optional().meta({ description: "What the start shows. Required unless `start` is false" }),
    ends_at: time.optional().meta({ description: "When it ends by itself, at most 8 hours ahead, the default" }),
  })
  .superRefine(withProblems(sizeProblems))
  .refine(({ start, alert }) => !start || alert !== undefined, {
    path: ["alert"],
    message: "is required: iOS starts no activity without one; or set `start` to false",
  })
  .refine(({ attributes }) => !Object.hasOwn(attributes, "herald"), {
    path: ["attributes", "herald"],
    message: "is reserved: Herald adds it",
  })
  .meta({ id: "NewActivity" });
export type NewActivity = z.infer<typeof newActivity>;

const activityExample = {
  attributes_type: "OrderAttributes",
  attributes: { order: "4711" },
  content_state: { status: "packed", minutes: 40 },
  targets: ["user:u_8412"],
  alert: { title: "Your order", body: "It is packed." },
};

/** Body of `PUT /activities/{a}`. */
export const PutActivity = namedBody(
  "PutActivity",
  { activity: newActivity },
  { examples: [{ activity: activityExample }] },
);

/** Body of `PATCH /activities/{a}`. The whole state: iOS replaces the last one. */
export const PatchActivity = namedBody(
  "PatchActivity",
  {
    activity: z
      .strictObject({
        ...state,
        alert: ActivityAlert.optional(),
        sequence: z
          .number()
          .int()
          .min(0)
          .optional()
          .meta({ description: "Of the caller: a state with a lower one than the newest is not written" }),
      })
      .superRefine(withProblems(sizeProblems)),
  },
  { examples: [{ activity: { content_state: { status: "on its way", minutes: 12 } } }] },
);
export type PatchActivity = z.infer<typeof PatchActivity>["activity"];

/** Body of `POST /activities/{a}/end`. */
export const EndActivity = namedBody(
  "EndActivity",
  {
    activity: z
      .strictObject({
        content_state: ContentState.optional().meta({ description: "The last state; absent: the newest one" }),
        dismiss_at: time.optional().meta({
          description: "When iOS removes it from the screen, at most 4 hours ahead, the default; past: at once",
        }),
        alert: ActivityAlert.optional(),
      })
      .superRefine(withProblems(sizeProblems)),
  },
  { examples: [{ activity: { content_state: { status: "delivered", minutes: 0 } } }] },
);
export type EndActivity = z.infer<typeof EndActivity>["activity"];

export const ActivityStatus = z.enum(["active", "ended"]).meta({ id: "ActivityStatus" });

const version = z
  .number()
  .int()
  .min(1)
  .meta({ description: "Increases with each state", examples: [3] });

/** The answer to a write. */
export const ActivityVersion = named(
  "ActivityVersion",
  {
    id: ActivityId,
    version,
    notification_id: NotificationId.meta({ description: "The notification that sends this version" }),
  },
  { examples: [{ id: "order-4711", version: 3, notification_id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac" }] },
);
export type ActivityVersion = z.infer<typeof ActivityVersion>;

const times = {
  ends_at: z.iso.datetime(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime().meta({ description: "When its newest version was written" }),
  ended_at: z.iso.datetime().optional(),
  dismiss_at: z.iso.datetime().optional(),
};

const ActivityChannelView = named("ActivityChannel", {
  app: AppId,
  environment: ApnsEnvironment,
  version: version.optional().meta({ description: "The last one that Apple accepted for it; with `problem`: refused" }),
  problem: z
    .string()
    .optional()
    .meta({
      description:
        "Why there is no channel (then the devices have tokens), or why the last state was refused: mostly Apple's word",
      examples: ["CannotCreateChannelConfig"],
    }),
});

export const Activity = named("Activity", {
  id: ActivityId,
  status: ActivityStatus,
  version,
  ...fixed,
  start: z.boolean(),
  ...state,
  targets: targetList(TargetEntry),
  sequence: z.number().int().optional(),
  channels: z.array(ActivityChannelView).optional().meta({
    description: "Its broadcast channels. Apple gives no result per device, so no count includes their devices",
  }),
  notification_id: NotificationId.meta({ description: "The notification that sends the newest version" }),
  ...times,
});
export type Activity = z.infer<typeof Activity>;

/** An activity as its app reads it. */
export const DeviceActivity = named("DeviceActivity", {
  id: ActivityId,
  status: ActivityStatus,
  version,
  timestamp: z.number().int().meta({ description: "Seconds since 1970, as in the push of this version" }),
  attributes_type: fixed.attributes_type,
  attributes: ActivityAttributes,
  content_state: ContentState,
  stale_at: z.iso.datetime().optional(),
  relevance,
  channel_id: z.string().optional().meta({ description: "With `via`: the channel with which the app starts it" }),
  ...times,
});
export type DeviceActivity = z.infer<typeof DeviceActivity>;
