import {
  type AppData,
  canonicalZone,
  isTimeZone,
  languageIn,
  languagesOf,
  maxLocaleLength,
  readLocale,
} from "@herald/contracts";

type Known = {
  /** Other names under which apps send it, in the order in which they are read. */
  readonly aliases: readonly string[];
  /** Undefined: it is not valid. */
  readonly stored: (text: string) => string | undefined;
  readonly message: string;
};

/** The identifiers that Herald itself reads. */
const known: Readonly<Record<"current_time_zone" | "current_locale", Known>> = {
  current_time_zone: {
    aliases: ["time_zone", "timezone"],
    stored: (text) => (isTimeZone(text) ? text : undefined),
    message: "must be an IANA time zone such as Europe/Berlin",
  },
  current_locale: {
    aliases: ["locale", "language"],
    stored: (text) => readLocale(text)?.tag,
    message: `must be a BCP 47 locale such as de or pt-BR, of at most ${maxLocaleLength} characters without extensions`,
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
  for (const [name, { aliases, stored, message }] of Object.entries(known)) {
    const given = [name, ...aliases].find((one) => values.has(one));
    if (given === undefined) continue;
    const value = values.get(given);
    values.delete(given);
    // In a merge patch, null removes it.
    const read = value === null ? null : typeof value === "string" ? stored(value) : undefined;
    if (read === undefined) problems.push({ field: `identifiers.${given}`, message });
    else values.set(name, read);
  }
  return { identifiers: Object.fromEntries(values), problems };
};

/** A device's time zone and locale, as copied from its stored identifiers. */
export const timeZoneOf = ({ current_time_zone: zone }: AppData): string | undefined => text(zone);
export const localeOf = ({ current_locale: locale }: AppData): string | undefined => text(locale);

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

type Meaning = {
  /** What a device with this value belongs to. */
  readonly of: (value: string) => readonly string[] | undefined;
  /** What a target with this value asks for. */
  readonly asked: (value: string) => string | undefined;
};

/** The identifiers that targets compare by what they mean. Undefined: the value means nothing. */
const meanings: Readonly<Record<string, Meaning>> = {
  current_time_zone: {
    of: (value) => {
      const zone = canonicalZone(value);
      return zone === undefined ? undefined : [zone];
    },
    asked: canonicalZone,
  },
  current_locale: {
    of: (value) => {
      const meaning = readLocale(value);
      return meaning && languagesOf(meaning);
    },
    asked: (value) => {
      const meaning = readLocale(value);
      return meaning && languageIn(meaning, meaning.region);
    },
  },
};

const meaningOf = (path: string): Meaning | undefined => (Object.hasOwn(meanings, path) ? meanings[path] : undefined);

/** Whether targets compare the identifier at a path by what it means: `zh_TW` is `zh-Hant-TW`, and belongs to `zh-Hant`. */
export const isComparedByMeaning = (path: string): boolean => meaningOf(path) !== undefined;

/** What a target on such an identifier asks for; undefined: its value means nothing, and no device has it. */
export const askedIdentifier = (path: string, value: string): string | undefined => meaningOf(path)?.asked(value);

/** What a device with this value of such an identifier belongs to. */
export const identifierMeanings = (path: string, value: unknown): readonly string[] =>
  (typeof value === "string" ? meaningOf(path)?.of(value) : undefined) ?? [];
