import { z } from "zod";
import { parseDuration } from "../../duration.ts";
import { bucketCount } from "../../ids.ts";
import { named, type PathProblem } from "../../named.ts";
import { ofDevice } from "./local-time.ts";

/** A rollout without its canary takes at most this long. */
const maxMinutes = 400;
/** The longest `wait`, in milliseconds. */
export const maxCanaryWaitMs = 86_400_000;
/** The longest that a rollout is planned to take, in milliseconds. */
export const maxRolloutMs = maxCanaryWaitMs + maxMinutes * 60_000;
const defaultWait = "10m";

/** The speed, in devices a minute, at which an audience is reached within the limit. */
export const minPerMinute = (audience: number): number => Math.max(1, Math.ceil(audience / maxMinutes));

const isWait = (text: string): boolean => {
  const ms = parseDuration(text);
  return ms !== undefined && ms >= 60_000 && ms <= maxCanaryWaitMs;
};

/** How long the canary is watched, in milliseconds. */
export const canaryWaitMs = ({ wait = defaultWait }: { readonly wait?: string | undefined }): number =>
  parseDuration(wait) ?? 0;

/** How many buckets a canary has. */
export const canaryBuckets = ({ share }: { readonly share: number }): number =>
  Math.max(1, Math.round(share * bucketCount));

const share = `must be from 1/${bucketCount} to 0.5`;

export const PerMinute = z
  .number()
  .int()
  .min(1)
  .max(10_000_000)
  .meta({
    description: `How many devices are released a minute, give or take a ${bucketCount}th of the audience; at least as many as reach all of them in ${maxMinutes} minutes. A change may only lower it`,
    examples: [60_000],
  });

/** How a send to many devices begins small, how fast it goes on, and when it stops by itself. */
export const Rollout = z
  .strictObject({
    canary: z
      .strictObject({
        share: z
          .number()
          .min(1 / bucketCount, share)
          .max(0.5, share)
          .meta({ description: "Which share of the audience gets it first", examples: [0.01] }),
        wait: z
          .string()
          .refine(isWait, "must be from `1m` to `24h`, such as `10m`")
          .optional()
          .meta({ description: `How long the others wait, from its beginning; absent: \`${defaultWait}\`` }),
      })
      .optional()
      .meta({ description: "A first part of the audience, chosen by chance; absent: none" }),
    per_minute: PerMinute.optional(),
    stop_if: z
      .strictObject({
        failed: z
          .number()
          .gt(0)
          .max(1)
          .meta({ description: "The share of devices that failed, of those with an outcome", examples: [0.05] }),
        unregistered: z
          .literal(true)
          .optional()
          .meta({ description: "Devices whose app is gone count as failed, too; absent: they do not" }),
      })
      .optional()
      .meta({ description: "It is paused when more devices failed, judged from 50 outcomes on; absent: never" }),
  })
  .refine((rollout) => Object.keys(rollout).length > 0, "needs `canary`, `per_minute` or `stop_if`")
  .meta({
    id: "Rollout",
    minProperties: 1,
    examples: [{ canary: { share: 0.01, wait: "10m" }, per_minute: 60_000, stop_if: { failed: 0.05 } }],
  } as z.core.GlobalMeta);
export type Rollout = z.infer<typeof Rollout>;

export const RolloutPhase = z.enum(["waiting", "canary", "rolling", "held", "done"]).meta({
  id: "RolloutPhase",
  description:
    "`waiting`: for its time, or that of the others behind the canary. `held`: it goes on when devices that were released have an outcome",
});

export const HeldReason = z.enum(["provider-paused", "throttled", "few-outcomes"]).meta({
  id: "HeldReason",
  description:
    "`provider-paused`: devices wait because their provider is paused. `throttled`: devices are sent to more slowly than they are released. `few-outcomes`: fewer than 50 devices have an outcome by which to judge",
});
export type HeldReason = z.infer<typeof HeldReason>;

const count = z.number().int().min(0);

/** How far a rollout is. */
const progress = {
  phase: RolloutPhase,
  held: HeldReason.optional().meta({ description: "Why the phase is `held`" }),
  audience: count.optional().meta({ description: "How many devices it has, estimated; absent: not known yet" }),
  released: count.meta({ description: "Devices that were released so far" }),
  rate: count.optional().meta({ description: "Devices a minute of the last part; absent: no part has ended" }),
  next_at: z.iso.datetime().optional().meta({ description: "When the next part begins; absent: none waits" }),
  outcomes: count.meta({ description: "Devices that were accepted or failed" }),
  failed: count.meta({ description: "Devices of these that count as failed" }),
};

/** A rollout as a notification shows it. */
export const RolloutState = named(
  "RolloutState",
  { ...Rollout.shape, ...progress },
  {
    examples: [
      {
        ...{ per_minute: 60_000, stop_if: { failed: 0.05 }, phase: "rolling", audience: 1_000_000 },
        ...{ released: 120_000, rate: 59_980, next_at: "2030-01-31T09:12:10.000Z", outcomes: 118_211, failed: 402 },
      },
    ],
  },
);
export type RolloutState = z.infer<typeof RolloutState>;

/** A rollout as a dry run sees it. */
export const PlannedRollout = named(
  "PlannedRollout",
  {
    canary_devices: count.optional().meta({ description: "Absent: it has no canary" }),
    minutes: count.meta({ description: "How long it takes at least" }),
  },
  { examples: [{ canary_devices: 244, minutes: 27 }] },
);

/** The fields that do not go with a rollout. */
export const rolloutProblems = ({
  recipients,
  time_zone: zone,
}: {
  readonly recipients?: unknown;
  readonly time_zone?: string | undefined;
}): PathProblem[] => {
  const problem = (why: string) => ({ path: ["rollout"], message: `cannot be set beside ${why}` });
  return [
    ...(recipients === undefined ? [] : [problem("`recipients`: send to `targets`")]),
    ...(zone === ofDevice ? [problem('`time_zone: "device"`, which sends in waves of its own')] : []),
  ];
};
