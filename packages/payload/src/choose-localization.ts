import { type LocaleMeaning, languageIn, parentRegion, readLocale } from "@herald/contracts";

/** Languages whose readers read another one in the same script, if their own is not there. */
const alsoRead: Readonly<Record<string, string>> = { nn: "no", yue: "zh" };

type Localization = { readonly key: string; readonly meaning: LocaleMeaning };

/** Adds the first of each: of two localizations that mean the same, the first counts. */
const byForm = (all: readonly Localization[], formOf: (meaning: LocaleMeaning) => string): Map<string, string> =>
  new Map(all.toReversed().map(({ key, meaning }) => [formOf(meaning), key]));

/**
 * Chooses among localizations for a device's locale, by what locales mean: the same; the same language, script and region; the group that
 * its region belongs to (`es-419` for `es-MX`); the language in its script; another region of it. Never another script: a reader of
 * traditional Chinese gets no simplified text. Undefined: the device gets the notification's own words.
 */
export const createChooseLocalization = (keys: readonly string[]): ((locale: string) => string | undefined) => {
  const all = keys.flatMap((key) => {
    const meaning = readLocale(key);
    return meaning ? [{ key, meaning }] : [];
  });
  const byTag = byForm(all, ({ tag }) => tag);
  const byMeaning = byForm(all, (meaning) => languageIn(meaning, meaning.region));

  /** Prefers regions of the same group, then the one that the language implies, then the first. */
  const inOtherRegion = (wanted: LocaleMeaning): string | undefined => {
    const own = wanted.region ?? wanted.likelyRegion;
    const groupOf = (region: string | undefined) => region && (parentRegion(wanted, region) ?? region);
    const others = all.filter(({ meaning }) => languageIn(meaning) === languageIn(wanted));
    const found =
      others.find(({ meaning }) => meaning.region === own) ??
      others.find(({ meaning }) => groupOf(meaning.region) === groupOf(own)) ??
      others.find(({ meaning }) => meaning.region === wanted.likelyRegion);
    return (found ?? others[0])?.key;
  };

  const choose = (wanted: LocaleMeaning): string | undefined => {
    for (let region = wanted.region; region !== undefined; region = parentRegion(wanted, region)) {
      const key = byMeaning.get(languageIn(wanted, region));
      if (key !== undefined) return key;
    }
    return byMeaning.get(languageIn(wanted)) ?? inOtherRegion(wanted);
  };

  return (locale) => {
    const wanted = readLocale(locale);
    if (!wanted) return undefined;
    const found = byTag.get(wanted.tag) ?? choose(wanted);
    const other = alsoRead[wanted.language];
    return found === undefined && other !== undefined ? choose({ ...wanted, language: other }) : found;
  };
};
