import type { AppData } from "./app-data.ts";
import { isTimeZone } from "./time-zone.ts";

/** Room for a language, a script, a region and one extension. */
export const maxLocaleLength = 35;

/** iOS writes `de_DE`. */
const withHyphens = (locale: string): string => locale.replaceAll("_", "-");

const isLocale = (locale: string): boolean => {
  if (locale.length > maxLocaleLength) return false;
  try {
    return Intl.getCanonicalLocales(withHyphens(locale)).length > 0;
  } catch {
    return false;
  }
};

type Known = {
  /** Other names under which apps send it, in the order in which they are read. */
  readonly aliases: readonly string[];
  readonly fits: (text: string) => boolean;
  readonly stored?: (text: string) => string;
  readonly message: string;
};

/** The identifiers that Herald itself reads. */
const known: Readonly<Record<"current_time_zone" | "current_locale", Known>> = {
  current_time_zone: {
    aliases: ["time_zone", "timezone"],
    fits: isTimeZone,
    message: "must be an IANA time zone such as Europe/Berlin",
  },
  current_locale: {
    aliases: ["locale", "language"],
    fits: isLocale,
    stored: withHyphens,
    message: `must be a BCP 47 locale such as de or pt-BR, of at most ${maxLocaleLength} characters`,
  },
};

export type IdentifierProblem = { readonly field: string; readonly message: string };

/**
 * Identifiers, or a merge patch of them, as Herald stores them: a time zone and a locale that came under another name get their own,
 * unless that is there too. Values that are not valid are left out. `problems`: why, by the path that was sent, such as
 * `identifiers.time_zone`.
 */
export const readIdentifiers = (
  sent: AppData,
): { readonly identifiers: AppData; readonly problems: readonly IdentifierProblem[] } => {
  const values = new Map(Object.entries(sent));
  const problems: IdentifierProblem[] = [];
  for (const [name, { aliases, fits, stored, message }] of Object.entries(known)) {
    const given = [name, ...aliases].find((one) => values.has(one));
    if (given === undefined) continue;
    const value = values.get(given);
    values.delete(given);
    // In a merge patch, null removes it.
    if (value === null) values.set(name, null);
    else if (typeof value === "string" && fits(value)) values.set(name, stored?.(value) ?? value);
    else problems.push({ field: `identifiers.${given}`, message });
  }
  return { identifiers: Object.fromEntries(values), problems };
};

/** A device's time zone and locale, as copied from its stored identifiers. */
export const timeZoneOf = ({ current_time_zone: zone }: AppData): string | undefined => text(zone);
export const localeOf = ({ current_locale: locale }: AppData): string | undefined => text(locale);

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
