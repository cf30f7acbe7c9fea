import { expect, test } from "vitest";
import { createChooseLocalization } from "./choose-localization.ts";
import { mergeLayers } from "./liquid/texts.ts";

/** The keys of `localizations`, and what devices read: undefined is the notification's own text. */
const cases: [string, Record<string, string | undefined>][] = [
  [
    "zh-Hans zh-Hant",
    {
      ...{ "zh-CN": "zh-Hans", "zh-SG": "zh-Hans", "zh-TW": "zh-Hant", "zh-HK": "zh-Hant", "zh-MO": "zh-Hant" },
      ...{ zh: "zh-Hans", "zh-Hans-HK": "zh-Hans", zh_TW: "zh-Hant", "yue-HK": "zh-Hant", en: undefined },
    },
  ],
  ["zh zh-Hant", { "zh-TW": "zh-Hant", "zh-CN": "zh", "zh-Hans-SG": "zh" }],
  ["zh", { "zh-TW": undefined, "zh-Hant": undefined, "zh-HK": undefined, "zh-CN": "zh" }],
  ["zh-TW zh-HK", { "zh-MO": "zh-HK", "zh-Hant": "zh-TW", "zh-CN": undefined, zh: undefined }],
  ["pt-BR", { "pt-PT": "pt-BR", pt: "pt-BR" }],
  ["pt-BR pt-PT", { "pt-AO": "pt-PT", "pt-MO": "pt-PT", pt: "pt-BR" }],
  ["es es-419", { "es-MX": "es-419", "es-US": "es-419", "es-ES": "es", es: "es" }],
  ["es-419", { "es-MX": "es-419", "es-ES": "es-419" }],
  ["es-MX es-ES", { "es-AR": "es-MX", es: "es-ES" }],
  ["en-US en-GB", { "en-AU": "en-GB", "en-IN": "en-GB", "en-PH": "en-US", en: "en-US", "en-001": "en-GB" }],
  ["en en-001", { "en-AU": "en-001", "en-GB": "en-001", "en-US": "en" }],
  ["sr sr-Latn", { "sr-RS": "sr", "sr-ME": "sr-Latn", sh: "sr-Latn", sr_RS: "sr", "sr__#Latn": "sr-Latn" }],
  ["sr", { "sr-Latn": undefined }],
  ["iw in nb tl", { "he-IL": "iw", "id-ID": "in", no: "nb", nn: "nb", "fil-PH": "tl" }],
  ["nn no", { "nb-NO": "no", "nn-NO": "nn" }],
  ["uz kk", { "uz-AF": undefined, "uz-Cyrl-UZ": undefined, "uz-UZ": "uz", "kk-KZ": "kk" }],
  ["de en-US", { "de-DE-u-co-phonebk": "de", "en_US@rg=dezzzz": "en-US", en_US_POSIX: "en-US", C: undefined }],
  ["ca ca-valencia", { "ca-valencia": "ca-valencia", "ca-ES": "ca" }],
  ["pt_br pt-BR", { "pt-BR": "pt_br" }],
];

test.each(cases)("of %s", (keys, expected) => {
  const choose = createChooseLocalization(keys.split(" "));
  expect(Object.fromEntries(Object.keys(expected).map((locale) => [locale, choose(locale)]))).toEqual(expected);
});

test("a send's localization replaces the template's of the same locale, however both spell it", () => {
  const template = { title: "Hello", localizations: { "pt-BR": { title: "Olá", body: "Mundo" }, iw: { title: "a" } } };
  const send = { localizations: { pt_br: { title: "Oi" }, he: { title: "b" } } };
  expect(mergeLayers<string, typeof template, typeof send>(template, send).localizations).toEqual({
    "pt-BR": { title: "Oi", body: "Mundo" },
    iw: { title: "b" },
  });
});
