import type { ExpandedV1, LocalTime, Notification, NotificationContent, RolloutState, Wave } from "@herald/contracts";
import { maxWavesMs, type ZoneWave } from "@herald/rules";
import { type Buckets, bucketsOfPart, nextPartAt, outcomesOf, type RolloutProgress, shownProgress } from "./rollout.ts";

/** An expansion of a notification, and what it addressed, once it has. */
type StoredExpansion = Pick<ZoneWave, "at" | "skip"> & {
  /** Only devices of these time zones; absent: of all. */
  readonly zones?: readonly string[];
  /** Only devices of these buckets; absent: of all. */
  readonly buckets?: Buckets;
  /** Of a part of a rollout: from when the time to the next one counts. When it was due, if it began little later. */
  readonly pacedFrom?: Date;
  readonly devices?: number;
  readonly batches?: number;
};

/** The expansions of a notification, in turn. Most notifications have one, which is of all devices. */
export type Expansions = {
  /** The one that is next, or that is being expanded. */
  readonly n: number;
  readonly list: readonly StoredExpansion[];
  /** They are cut by the time zones of devices, for this local time. */
  readonly local?: LocalTime;
  /** They are parts of a rollout. The list has the last one that took place, and the next one. */
  readonly rollout?: RolloutProgress;
  /** When one was commanded again, because messages were lost. */
  readonly againAt?: Date;
};

export const oneExpansion = (at: Date): Expansions => ({ n: 0, list: [{ at }] });

/** Expansion `n`; undefined after the last one. */
export const expansionAt = ({ list, rollout }: Expansions, n: number): StoredExpansion | undefined =>
  list[n - (rollout?.past.n ?? 0)];

/** The first expansion of a rollout, of which none took place yet, or all take place again. */
export const firstPart = ({ held: _, ...rollout }: RolloutProgress, at: Date): Expansions => {
  const buckets = bucketsOfPart(rollout, 0);
  const past = { n: 0, batches: 0, devices: 0 };
  return { n: 0, list: [{ at, ...(buckets && { buckets }) }], rollout: { ...rollout, past } };
};

/**
 * The list as it is known when the next expansion begins, with the zones that devices have by now. A zone that came since belongs to the one
 * that begins if its time has come, so no device is left out. Those that took place stay as they are.
 */
export const replan = ({ n, list }: Expansions, planned: readonly ZoneWave[]): Expansions["list"] => {
  const done = list.slice(0, n);
  const current = list[n];
  if (!current) return list;
  const addressed = new Set([...done, current].flatMap(({ zones = [] }) => zones));
  const zones = [...(current.zones ?? [])];
  const later: ZoneWave[] = [];
  for (const wave of planned) {
    const added = wave.zones.filter((zone) => !addressed.has(zone));
    if (added.length === 0) continue;
    if (wave.at <= current.at && wave.skip === current.skip) zones.push(...added);
    else later.push({ ...wave, zones: added });
  }
  return [...done, { ...current, zones: zones.sort() }, ...later];
};

/** Whether it is too late for further expansions: too long after the first one. */
export const isTooLate = ({ n, list: [first] }: Expansions, now: Date): boolean =>
  n > 0 && first !== undefined && now.getTime() > first.at.getTime() + maxWavesMs;

type Sums = { readonly batches: number; readonly devices: number };

const sumOf = (parts: readonly Partial<Sums>[]): Sums => ({
  batches: parts.reduce((sum, { batches = 0 }) => sum + batches, 0),
  devices: parts.reduce((sum, { devices = 0 }) => sum + devices, 0),
});

type Known = {
  readonly expansions: Expansions;
  readonly expanded?: { readonly unmatched: readonly string[] } | undefined;
};

/** What expansion `n` addressed, in the list, and with that of the others. `next`: the one that follows. */
export const withExpanded = (
  { expansions, expanded }: Known,
  { n, batches, devices, unmatched, pages }: Pick<ExpandedV1, "n" | "batches" | "devices" | "unmatched" | "pages">,
  at: Date,
) => {
  const { rollout } = expansions;
  const current = expansionAt(expansions, n);
  const list = expansions.list.map((one) => (one === current ? { ...one, batches, devices } : one));
  const sums = sumOf([...(rollout ? [rollout.past] : []), ...list]);
  const before = n > 0 && expanded && new Set(expanded.unmatched);
  return {
    ...(rollout && current
      ? withNextPart(rollout, { ...current, batches, devices }, n, sums, at)
      : { list, next: list[n + 1], past: undefined }),
    expanded: {
      ...sums,
      // A target matched if it did in one of the expansions.
      unmatched: before ? unmatched.filter((target) => before.has(target)) : [...unmatched],
      ...(pages && list.length === 1 && { pages }),
      at,
    },
  };
};

/** The list of a rollout after part `n`, with the next one: at once if it takes place again. */
const withNextPart = (rollout: RolloutProgress, done: StoredExpansion & Sums, n: number, sums: Sums, now: Date) => {
  const buckets = bucketsOfPart(rollout, n + 1);
  const at = n + 1 < rollout.begun ? now : nextPartAt(rollout, { ...done, at: done.pacedFrom ?? done.at, n });
  const next: StoredExpansion | undefined = buckets && { at, buckets };
  const past = { n, batches: sums.batches - done.batches, devices: sums.devices - done.devices };
  return { list: [done, ...(next ? [next] : [])], next, past };
};

/** Whether an expansion took place before: it does again after a loss of messages. */
export const tookPlace = (expansions: Expansions, n: number): boolean =>
  expansions.rollout ? n < expansions.rollout.begun : expansionAt(expansions, n)?.devices !== undefined;

/** The expansions as clients see them, if there are several by plan. Those that will not take place any more are left out. */
export const shownWaves = ({
  expansions,
  step,
}: {
  readonly expansions?: Expansions;
  readonly step?: string | undefined;
}): Notification["schedule"] =>
  expansions?.list.flatMap(({ at, zones = [], skip, devices }, index): Wave[] => {
    const shown = { at: at.toISOString(), time_zones: [...zones] };
    if (devices !== undefined) return [{ ...shown, status: skip ? "skipped" : "sent", devices }];
    if (step === undefined || step === "delivering") return [];
    const begun = index === expansions.n && step !== "scheduled";
    return [{ ...shown, status: begun ? "sending" : "scheduled" }];
  });

type OfRollout = {
  readonly content: NotificationContent;
  readonly expansions?: Expansions;
  readonly expanded?: { readonly devices: number };
  readonly step?: string | undefined;
  readonly nextAt?: Date | undefined;
};

/** A rollout as clients see it. `counts`: the results of its devices. */
export const shownRollout = (
  { content: { rollout = {} }, expansions, expanded, ...state }: OfRollout,
  counts: Parameters<typeof outcomesOf>[1],
): RolloutState => {
  const { rollout: progress, list = [] } = expansions ?? {};
  return {
    ...rollout,
    ...(progress ? shownProgress(progress, list, state) : { phase: "waiting" }),
    released: expanded?.devices ?? 0,
    ...outcomesOf(rollout, counts),
  };
};
