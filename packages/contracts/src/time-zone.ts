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
