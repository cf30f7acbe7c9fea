import type { DeliveryReason, LocalTime } from "@herald/contracts";
import { instantOf } from "./local-time.ts";

/** The zone of devices without one, in waves and facets. */
export const noZone = "none";

/** Devices of some time zones, which are addressed together. */
export type ZoneWave = {
  readonly at: Date;
  /** Canonical names, sorted, and {@link noZone}. */
  readonly zones: readonly string[];
  /** Nothing is sent to these devices, for this reason. */
  readonly skip?: DeliveryReason | undefined;
};

/** Waves that would begin later than this after the first one do not take place. */
export const maxWavesMs = 72 * 3_600_000;

const dayMs = 86_400_000;

const nextDay = (local: string): string => new Date(Date.parse(`${local}Z`) + dayMs).toISOString().replace(/Z$/, "");

/** When clocks of a zone show the local time. */
const zoneAt = ({ at, past, zone: fallback, since }: LocalTime, zone: string): Omit<ZoneWave, "zones"> => {
  const name = zone === noZone ? fallback : zone;
  const instant = instantOf(at, name);
  const earliest = new Date(since);
  if (instant > earliest) return { at: instant };
  if (past === "tomorrow") return { at: instantOf(nextDay(at), name) };
  return { at: earliest, ...(past === "skip" && { skip: "past-local-time" }) };
};

/** Joins zones of the same instant into waves, in the order of time. */
export const wavesOf = (zones: Iterable<string>, at: (zone: string) => Omit<ZoneWave, "zones">): ZoneWave[] => {
  const waves = new Map<string, ZoneWave & { zones: string[] }>();
  for (const zone of [...new Set(zones)].sort()) {
    const planned = at(zone);
    const key = `${planned.at.toISOString()} ${planned.skip ?? ""}`;
    const wave = waves.get(key);
    if (wave) wave.zones.push(zone);
    else waves.set(key, { ...planned, zones: [zone] });
  }
  const sorted = [...waves].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, wave]) => wave);
  const last = (sorted[0]?.at.getTime() ?? 0) + maxWavesMs;
  return sorted.filter((wave) => wave.at.getTime() <= last);
};

/** The waves of a notification that is sent at the local time of each device. `zones`: those that its devices have. */
export const planWaves = (local: LocalTime, zones: Iterable<string>): ZoneWave[] =>
  wavesOf(zones, (zone) => zoneAt(local, zone));
