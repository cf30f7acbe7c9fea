export const maxTimeZoneLength = 64;

/** The names of IANA without a `/`. Node also knows 25 of ICU's, which mean others than people think: `BST` is the zone of Dhaka. */
const short = new Set(
  [
    "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan",
    "Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu",
  ].flatMap((names) => names.toLowerCase().split(" ")),
);

/** What Node knows besides: ICU's own, and two that IANA has removed. */
const notOfIana = /^systemv\/|^us\/pacific-new$|^canada\/east-saskatchewan$/;

/** The canonical names of zones, by their names in lower case. Only names that Node knows come in, so it stays small. */
const canonical = new Map<string, string>();

/**
 * The name under which Node lists an IANA time zone, such as `Europe/Berlin`; undefined for other names. Upper and lower case count as the
 * same, and former names get the present one.
 */
export const canonicalZone = (name: string): string | undefined => {
  // Node also accepts offsets such as +02:00, which give wrong days for half of the year where clocks change.
  if (!/^[A-Za-z]/.test(name) || name.length > maxTimeZoneLength) return undefined;
  const key = name.toLowerCase();
  const known = canonical.get(key);
  if (known !== undefined) return known;
  if (key.includes("/") ? notOfIana.test(key) : !short.has(key)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    canonical.set(key, timeZone);
    return timeZone;
  } catch {
    return undefined;
  }
};

/** Whether a name is an IANA time zone that this Node knows. */
export const isTimeZone = (name: string): boolean => canonicalZone(name) !== undefined;

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
