import type { ExpandedV1, LocalTime, Notification, Wave } from "@herald/contracts";
import { maxWavesMs, type ZoneWave } from "@herald/rules";

/** An expansion of a notification, and what it addressed, once it has. */
type StoredExpansion = Pick<ZoneWave, "at" | "skip"> & {
  /** Only devices of these time zones; absent: of all. */
  readonly zones?: readonly string[];
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
  /** When one was commanded again, because messages were lost. */
  readonly againAt?: Date;
};

export const oneExpansion = (at: Date): Expansions => ({ n: 0, list: [{ at }] });

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

/** What expansion `n` addressed, in the list, and with that of the others. */
export const withExpanded = (
  {
    expansions,
    expanded,
  }: {
    readonly expansions: Expansions;
    readonly expanded?: { readonly unmatched: readonly string[] } | undefined;
  },
  { n, batches, devices, unmatched, pages }: Pick<ExpandedV1, "n" | "batches" | "devices" | "unmatched" | "pages">,
  at: Date,
) => {
  const list = expansions.list.map((one, index) => (index === n ? { ...one, batches, devices } : one));
  const sum = (field: "batches" | "devices") => list.reduce((total, one) => total + (one[field] ?? 0), 0);
  const before = n > 0 && expanded && new Set(expanded.unmatched);
  return {
    list,
    expanded: {
      batches: sum("batches"),
      devices: sum("devices"),
      // A target matched if it did in one of the expansions.
      unmatched: before ? unmatched.filter((target) => before.has(target)) : [...unmatched],
      ...(pages && list.length === 1 && { pages }),
      at,
    },
  };
};

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
