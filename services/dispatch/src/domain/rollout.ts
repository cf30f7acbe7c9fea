import {
  bucketCount,
  bucketOf,
  canaryBuckets,
  canaryWaitMs,
  type HeldReason,
  type NotificationId,
  type Rollout,
  type RolloutState,
} from "@herald/contracts";
import type { Failures, Tally } from "./notification-counts.ts";

/** Buckets of devices, both included. */
export type Buckets = { readonly from: number; readonly to: number };

/** How the audience of a notification is cut into expansions: each is of whole buckets, which its number says. */
export type RolloutPlan = {
  /** How many devices it has, estimated. */
  readonly audience: number;
  /** The bucket with which it begins. */
  readonly start: number;
  /** How many buckets the first expansion has before the others wait; 0: none waits. */
  readonly canary: number;
  readonly waitMs: number;
  /** How many buckets each other expansion has at most. */
  readonly width: number;
  /** How many the first of them has; each next one has {@link growth} times as many. Absent: all have as many. */
  readonly grows?: number;
  readonly perMinute?: number;
};

/** A rollout, as far as it is. */
export type RolloutProgress = RolloutPlan & {
  /** The sums of the expansions that the list does not have any more, and how many they are. */
  readonly past: { readonly n: number; readonly batches: number; readonly devices: number };
  /** How many expansions have begun. */
  readonly begun: number;
  /** Why the next one does not begin although its time has come. */
  readonly held?: HeldReason;
  /** The outcomes before the last resume. */
  readonly before?: Outcomes;
};

/** The shortest time from one expansion to the next, at the speed that was asked for. */
const everyMs = 10_000;
/** Without a speed, the first expansion has what is judged first, and each next one so many times as many. */
const [minDevices, growth] = [1_000, 4];
/** They grow until they keep dispatch busy. Of the largest, three are out when a failure is seen that comes late. */
const partsOfFastest = 8;
/** With fewer outcomes, a share means nothing. */
const minOutcomes = 50;
/** So many minutes' devices, or times the last expansion's without a speed, may be without outcome before the next one begins. */
const mayBeOpen = 2;

export const planRollout = (
  id: NotificationId,
  { canary, per_minute: perMinute, stop_if: stopIf }: Rollout,
  audience: number,
): RolloutPlan => {
  const fastest = stopIf ? Math.max(minDevices, audience / partsOfFastest) : audience;
  const devices = perMinute === undefined ? fastest : (perMinute * everyMs) / 60_000;
  const bucketsFor = (count: number) =>
    Math.min(bucketCount, Math.max(1, Math.ceil((count * bucketCount) / Math.max(1, audience))));
  const first = canary ? canaryBuckets(canary) : 0;
  return {
    audience,
    // The canary does not reach over the end of the ring.
    start: bucketOf(id) % (bucketCount - first),
    canary: first,
    waitMs: canary ? canaryWaitMs(canary) : 0,
    width: bucketsFor(devices),
    ...(perMinute === undefined && stopIf && { grows: bucketsFor(minDevices) }),
    ...(perMinute !== undefined && { perMinute }),
  };
};

/** How many buckets expansion `n` has, unless the ring ends before. */
const widthOf = ({ canary, width, grows = width }: RolloutPlan, n: number): number => {
  const isAfterCanary = canary > 0 ? 1 : 0;
  return n < isAfterCanary ? canary : Math.min(width, grows * growth ** (n - isAfterCanary));
};

/** The buckets of expansion `n`, round the ring of all buckets; an expansion ends at the end of the ring. Undefined after the last one. */
export const bucketsOfPart = (plan: RolloutPlan, n: number): Buckets | undefined => {
  const end = plan.start + bucketCount;
  let from = plan.start;
  for (let part = 0; from < end; part++) {
    const most = from + widthOf(plan, part);
    const to = Math.min(most, from < bucketCount ? bucketCount : end);
    if (part === n) return { from: from % bucketCount, to: (to - 1) % bucketCount };
    from = to;
  }
  return undefined;
};

/**
 * Longer than a part's share of the speed: of parts that are a little late, and not all equally, five minutes would now and then have one
 * more than they may.
 */
const margin = 1.01;

/** An expansion that begins so much late does not delay the next one. What is later is not caught up. */
const caughtUpMs = 1_000;

/** From when the time to the next expansion counts, for one that begins `now` and was due before. */
export const pacedFrom = (due: Date, now: Date): Date => (now.getTime() - due.getTime() < caughtUpMs ? due : now);

/** When the next expansion begins, if nothing holds it. */
export const nextPartAt = (
  { canary, waitMs, perMinute }: RolloutPlan,
  { n, at, devices }: { readonly n: number; readonly at: Date; readonly devices: number },
): Date => {
  const paced = perMinute === undefined ? 0 : (devices * 60_000 * margin) / perMinute;
  return new Date(at.getTime() + Math.max(paced, n === 0 && canary > 0 ? waitMs : 0));
};

/** Devices that were accepted or failed, and those of them that count as failed. */
export type Outcomes = { readonly outcomes: number; readonly failed: number };

type Counts = { readonly tally: Tally; readonly failures: Failures };

export const outcomesOf = ({ stop_if: stopIf }: Rollout, { tally, failures }: Counts): Outcomes => ({
  outcomes: tally.accepted + tally.failed,
  failed: tally.failed - (stopIf?.unregistered ? 0 : (failures.unregistered ?? 0)),
});

/** Whether the next expansion begins; undefined: it does. */
export type PartDecision = { readonly held: HeldReason } | { readonly stop: string } | undefined;

type Results = {
  /** How many released devices have no outcome, but those that wait until a set time. `paused`: for their provider. */
  readonly open: { readonly devices: number; readonly paused: number };
  /** If there is a limit of failures. */
  readonly counts?: Counts | undefined;
};

const percent = (share: number): string => `${Math.round(share * 1_000) / 10} %`;

export const decideNextPart = (
  rollout: Rollout,
  progress: RolloutProgress,
  { open, counts }: Results,
): PartDecision => {
  const { stop_if: stopIf } = rollout;
  const { audience, width, perMinute, before, begun } = progress;
  const all = counts && outcomesOf(rollout, counts);
  const outcomes = (all?.outcomes ?? 0) - (before?.outcomes ?? 0);
  const failed = (all?.failed ?? 0) - (before?.failed ?? 0);
  if (stopIf && outcomes >= minOutcomes && failed > stopIf.failed * outcomes) {
    const [is, limit] = [percent(failed / outcomes), percent(stopIf.failed)];
    return { stop: `${failed} of ${outcomes} devices failed: ${is}, more than ${limit}` };
  }
  if (open.devices <= 0) return undefined;
  const last = (Math.min(width, widthOf(progress, begun - 1)) * audience) / bucketCount;
  if (open.devices > mayBeOpen * (perMinute ?? last))
    return { held: open.paused > 0 ? "provider-paused" : "throttled" };
  return stopIf && outcomes < minOutcomes ? { held: "few-outcomes" } : undefined;
};

type Shown = Pick<RolloutState, "phase" | "held" | "audience" | "rate" | "next_at">;

/** Where a rollout stands, as clients see it. `parts`: the last one that took place, and the next one. */
export const shownProgress = (
  { audience, held, canary, begun }: RolloutProgress,
  parts: readonly { readonly at: Date; readonly pacedFrom?: Date; readonly devices?: number }[],
  { step, nextAt }: { readonly step?: string | undefined; readonly nextAt?: Date | undefined },
): Shown => {
  const waits = step === "scheduled";
  const [last, next] = parts;
  const ms = last && next ? next.at.getTime() - (last.pacedFrom ?? last.at).getTime() : 0;
  const phase = (): Shown["phase"] => {
    if (step === undefined || step === "delivering") return "done";
    if (held) return "held";
    if (canary > 0 && begun === 1) return waits ? "waiting" : "canary";
    return waits && last?.devices === undefined ? "waiting" : "rolling";
  };
  return {
    phase: phase(),
    ...(held && step !== undefined && { held }),
    audience,
    ...(last?.devices !== undefined && ms > 0 && { rate: Math.round((last.devices * 60_000) / ms) }),
    ...(waits && nextAt && { next_at: nextAt.toISOString() }),
  };
};
