import type { ExpandedV1, LocalTime, Notification, Wave } from "@herald/contracts";
import { maxWavesMs, type ZoneWave } from "@herald/rules";

/** A wave of a notification, and what it addressed, once it has. */
type StoredWave = ZoneWave & { readonly devices?: number; readonly batches?: number };

/** Several expansions in turn. */
export type Waves = {
  /** The wave that is next, or that is being expanded. */
  readonly n: number;
  readonly list: readonly StoredWave[];
  /** They are cut by the time zones of devices, for this local time. */
  readonly local: LocalTime;
};

/**
 * The waves as they are known when the next one begins, with the zones that devices have by now. A zone that came since belongs to the wave
 * that begins if its time has come, so no device is left out. Waves that took place stay as they are.
 */
export const replan = ({ n, list }: Waves, planned: readonly ZoneWave[]): Waves["list"] => {
  const done = list.slice(0, n);
  const current = list[n];
  if (!current) return list;
  const addressed = new Set([...done, current].flatMap(({ zones }) => zones));
  const zones = [...current.zones];
  const later: ZoneWave[] = [];
  for (const wave of planned) {
    const added = wave.zones.filter((zone) => !addressed.has(zone));
    if (added.length === 0) continue;
    if (wave.at <= current.at && wave.skip === current.skip) zones.push(...added);
    else later.push({ ...wave, zones: added });
  }
  return [...done, { ...current, zones: zones.sort() }, ...later];
};

/** Whether it is too late for further waves: too long after the first one. */
export const isTooLate = ({ list: [first] }: Waves, now: Date): boolean =>
  first !== undefined && now.getTime() > first.at.getTime() + maxWavesMs;

/** The expansion so far, with that of wave `n`, and the waves with what it addressed. */
export const withExpanded = (
  {
    waves,
    expanded,
  }: { readonly waves: Waves; readonly expanded?: { readonly unmatched: readonly string[] } | undefined },
  n: number,
  { batches, devices, unmatched }: Pick<ExpandedV1, "batches" | "devices" | "unmatched">,
  at: Date,
) => {
  const list = waves.list.map((wave, index) => (index === n ? { ...wave, batches, devices } : wave));
  const sum = (field: "batches" | "devices") => list.reduce((total, wave) => total + (wave[field] ?? 0), 0);
  const before = expanded && new Set(expanded.unmatched);
  return {
    list,
    expanded: {
      batches: sum("batches"),
      devices: sum("devices"),
      // A target matched if it did in one of the waves.
      unmatched: before ? unmatched.filter((target) => before.has(target)) : [...unmatched],
      at,
    },
  };
};

/** The waves as clients see them. Waves that will not take place any more are left out. */
export const shownWaves = ({
  waves,
  step,
}: {
  readonly waves?: Waves;
  readonly step?: string | undefined;
}): Notification["schedule"] =>
  waves?.list.flatMap(({ at, zones, skip, devices }, index): Wave[] => {
    const shown = { at: at.toISOString(), time_zones: [...zones] };
    if (devices !== undefined) return [{ ...shown, status: skip ? "skipped" : "sent", devices }];
    if (step === undefined || step === "delivering") return [];
    const begun = index === waves.n && step !== "scheduled";
    return [{ ...shown, status: begun ? "sending" : "scheduled" }];
  });
