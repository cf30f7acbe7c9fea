import { canonicalZone } from "@herald/contracts";

/** By canonical zone, for good: some 440 of 30 KB. V8 does not know their size, so it would not remove dropped ones in time. */
const formats = new Map<string, Intl.DateTimeFormat>();

const formatOf = (name: string): Intl.DateTimeFormat => {
  const zone = canonicalZone(name) ?? name;
  const known = formats.get(zone);
  if (known) return known;
  const digits = { month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" } as const;
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", ...digits });
  formats.set(zone, format);
  return format;
};

const secondMs = 1_000;
const dayMs = 86_400_000;

/** What clocks of a zone show at an instant, as milliseconds since 1970 on those clocks. Years before 100 are not supported. */
export const wallTime = (at: number, zone: string): number => {
  // 3/31/2030, 09:00:00. Reading its parts takes twice as long.
  const [month = 1, day, year = 0, hour, minute, second] = (formatOf(zone).format(at).match(/\d+/g) ?? []).map(Number);
  // Formats leave out the milliseconds.
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((at % secondMs) + secondMs) % secondMs);
};

/** What clocks of a zone show at an instant, such as `2030-03-31T09:00:00`. */
export const localTime = (at: Date, zone: string): string =>
  new Date(wallTime(at.getTime(), zone)).toISOString().slice(0, "2030-03-31T09:00:00".length);

/**
 * The instant at which clocks of a zone show a local time such as `2030-03-31T09:00:00`. Where clocks skip it, the first instant after the
 * gap; where they show it twice, the first of both.
 */
export const instantOf = (local: string, zone: string): Date => {
  const wall = Date.parse(`${local}Z`);
  const offsetAt = (at: number): number => wallTime(at, zone) - at;
  // No offset is as large as a day, so the zone's next change, if one is near, is between the two.
  const [before, after] = [offsetAt(wall - dayMs), offsetAt(wall + dayMs)];
  const instants = [wall - before, wall - after].filter((at) => wallTime(at, zone) === wall);
  if (instants.length > 0) return new Date(Math.min(...instants));
  let [last, first] = [wall - after, wall - before];
  while (first - last > 1) {
    const middle = Math.floor((first + last) / 2);
    if (offsetAt(middle) === before) last = middle;
    else first = middle;
  }
  return new Date(first);
};
