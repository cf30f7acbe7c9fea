import type { CapWindow } from "@herald/contracts";
import { instantOf, localTime } from "@herald/rules";

const dayMs = 86_400_000;

/** When the present hour, day or week began in a time zone. Weeks begin on Monday. Later instants have the same or a later start. */
export const windowStart = (per: CapWindow, zone: string, now: Date): Date => {
  const local = localTime(now, zone);
  if (per === "hour") return instantOf(`${local.slice(0, "2030-03-31T09".length)}:00:00`, zone);
  const midnight = Date.parse(`${local.slice(0, "2030-03-31".length)}T00:00:00Z`);
  const sinceMonday = per === "week" ? (new Date(midnight).getUTCDay() + 6) % 7 : 0;
  return instantOf(new Date(midnight - sinceMonday * dayMs).toISOString().slice(0, -".000Z".length), zone);
};
