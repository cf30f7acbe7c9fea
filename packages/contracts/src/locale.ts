import { createLastUsed } from "./last-used.ts";

/** Room for a language, a script, a region and variants. */
export const maxLocaleLength = 35;

/** Phones add keywords: `zh_Hans_CN@calendar=gregorian;currency=CNY;numbers=latn`. */
const maxSentLocaleLength = 128;

/** What a locale means for readers, however it is written. */
export type LocaleMeaning = {
  /** As BCP 47, without extensions: `zh-Hans-CN`, `he`, `ca-valencia`. */
  readonly tag: string;
  /** Bokmål is `no`, as most texts call it. */
  readonly language: string;
  /** The named or implied script: `Hant` for `zh-TW`. Empty for languages that Unicode's data does not know. */
  readonly script: string;
  /** Absent if it names none. */
  readonly region: string | undefined;
  /** The region that its language and script imply: `BR` for `pt`. */
  readonly likelyRegion: string | undefined;
};

/** POSIX names scripts by modifiers (`sr_RS@latin`), and .NET once did by names of its own (`zh-CHT`). */
const scripts: Readonly<Record<string, string>> = {
  latin: "Latn",
  cyrillic: "Cyrl",
  devanagari: "Deva",
  chs: "Hans",
  cht: "Hant",
};

/**
 * The subtags that decide what a reader reads, in the order of BCP 47. Knows the forms of BCP 47 (`zh-Hans-CN`), iOS (`en_US@rg=dezzzz`), Java
 * (`zh_CN_#Hans`, `sr__#Latn`, `th_TH_TH_#u-nu-thai`) and POSIX (`de_DE.UTF-8@euro`, `en_US_POSIX`). Undefined for other texts.
 */
const subtagsOf = (text: string): string[] | undefined => {
  const [, name = "", modifier = ""] = /^([^.@]*)(?:\.[^@]*)?(?:@(.*))?$/s.exec(text) ?? [];
  const [first = "", ...others] = name.split(/[-_]/);
  if (!/^[A-Za-z]{2,3}$/.test(first)) return undefined;
  let language = first;
  let script = scripts[modifier.toLowerCase()];
  let region: string | undefined;
  const variants: string[] = [];
  for (const [at, part] of others.entries()) {
    const subtag = part.replace(/^#/, "");
    if (!/^[A-Za-z0-9]{0,8}$/.test(subtag)) return undefined;
    // A single character begins an extension. No extension says what a reader reads.
    if (subtag.length === 1) break;
    const named = scripts[subtag.toLowerCase()];
    if (named !== undefined) script = named;
    else if (/^[A-Za-z]{4}$/.test(subtag)) script = subtag;
    else if (/^(?:[A-Za-z]{2}|\d{3})$/.test(subtag)) region ??= subtag;
    // `zh-cmn` and `zh-yue`, forms of RFC 4646. The language itself is the last part. `en-USA` and `en-GB-oed` are English.
    else if (/^[A-Za-z]{3}$/.test(subtag) && at < maxExtendedParts && extended.has(first.toLowerCase())) {
      if (script === undefined && region === undefined) language = subtag;
    } else if (/^(?:[A-Za-z0-9]{5,}|\d[A-Za-z0-9]{3})$/.test(subtag) && subtag.toUpperCase() !== "POSIX")
      variants.push(subtag);
  }
  return [language, script ?? "", region ?? "", ...variants].filter((subtag) => subtag !== "");
};

const maxExtendedParts = 3;
/** The languages that have extended parts: the prefixes of `extlang` in IANA's registry. */
const extended = new Set("ar kok lv ms sgn sw uz zh".split(" "));

/** Languages of which nearly all texts have the name of another one. */
const commonNames: Readonly<Record<string, string>> = { nb: "no" };

const read = (text: string): LocaleMeaning | undefined => {
  const subtags = subtagsOf(text);
  if (!subtags) return undefined;
  try {
    // Replaces what was renamed: `iw` is `he`, `sh` is `sr-Latn`, `en-UK` is `en-GB`.
    const locale = new Intl.Locale(subtags.join("-"));
    const { script = "", region: likelyRegion } = locale.maximize();
    const { baseName: tag, language, region } = locale;
    // V8 says undefined for `und`.
    if (!language || language === "und" || tag.length > maxLocaleLength) return undefined;
    return { tag, language: commonNames[language] ?? language, script, region, likelyRegion };
  } catch {
    return undefined;
  }
};

/** More than really exist. Reading one takes ten microseconds, and clients may invent them. */
const meanings = createLastUsed<LocaleMeaning | undefined>(1_000);

/**
 * Reads a locale as platforms write it. Undefined for what is no locale, and for `und`, which names no language. Source: BCP 47 and
 * Unicode's likely subtags.
 */
export const readLocale = (text: string): LocaleMeaning | undefined =>
  text.length > maxSentLocaleLength ? undefined : meanings(text, () => read(text));

/** Regions whose readers read the English of the United States, and those whose Spanish is that of Latin America. */
const american = new Set("US AS GU MH MP PH PR UM VI".split(" "));
const latinAmerican = new Set("AR BO BR BZ CL CO CR CU DO EC GT HN MX NI PA PE PR PY SV US UY VE".split(" "));

/** The region whose texts a region shares where it has none of its own. Source: `parentLocales` of Unicode's CLDR. */
export const parentRegion = ({ language, script }: LocaleMeaning, region: string): string | undefined => {
  if (language === "en" && region !== "001" && !american.has(region)) return "001";
  if (language === "es" && latinAmerican.has(region)) return "419";
  if (language === "pt" && region !== "PT" && region !== "BR") return "PT";
  return language === "zh" && script === "Hant" && region === "MO" ? "HK" : undefined;
};

/** A language in a script, in a region or in all: `zh-Hant-TW`, `zh-Hant`. Locales with the same one mean the same. */
export const languageIn = ({ language, script }: LocaleMeaning, region?: string): string =>
  `${language}-${script}${region === undefined ? "" : `-${region}`}`;

/** What a locale belongs to: its region, the group of its region (`es-Latn-419`), and its language in its script. */
export const languagesOf = (meaning: LocaleMeaning): string[] => {
  const { region } = meaning;
  if (region === undefined) return [languageIn(meaning)];
  const group = parentRegion(meaning, region);
  const groups = group !== undefined && /\d/.test(group) ? [languageIn(meaning, group)] : [];
  return [languageIn(meaning, region), ...groups, languageIn(meaning)];
};
