import { describe, expect, test } from "vitest";
import { type LocaleMeaning, languagesOf, readLocale } from "./locale.ts";

describe("readLocale", () => {
  test.each([
    ["de_DE", "de-DE"],
    ["ZH-hant-tw", "zh-Hant-TW"],
    // Java
    ["zh_CN_#Hans", "zh-Hans-CN"],
    ["sr__#Latn", "sr-Latn"],
    ["th_TH_TH_#u-nu-thai", "th-TH"],
    ["iw_IL", "he-IL"],
    ["in_ID", "id-ID"],
    ["tl", "fil"],
    // iOS
    ["en_US@rg=dezzzz", "en-US"],
    ["zh_Hans_CN@calendar=gregorian;currency=CNY;numbers=latn", "zh-Hans-CN"],
    ["de-DE-u-co-phonebk", "de-DE"],
    // POSIX, which Chromium on Linux passes on
    ["en_US_POSIX", "en-US"],
    ["en-US-u-va-posix", "en-US"],
    ["en-US@posix", "en-US"],
    ["de_DE.UTF-8@euro", "de-DE"],
    ["sr_RS@latin", "sr-Latn-RS"],
    // .NET, and RFC 4646
    ["zh-CHT", "zh-Hant"],
    ["zh-cmn-Hans-CN", "zh-Hans-CN"],
    ["zh-min-nan", "nan"],
    // What was renamed
    ["sh", "sr-Latn"],
    ["mo", "ro"],
    ["en-UK", "en-GB"],
    ["ca-ES-valencia", "ca-ES-valencia"],
    ["de-x-private", "de"],
  ])("reads %s as %s", (sent, tag) => {
    expect(readLocale(sent)?.tag).toBe(tag);
  });

  test.each([
    ...["", "C", "POSIX", "root", "und", "und-CN", "i-klingon", "English", "German (Austria)", "default", "_DE"],
    ...["de-!", "de\0", "de-DE,en;q=0.9", "__proto__", `de-${"1abcd-".repeat(8)}`, `de@${"x".repeat(200)}`],
  ])("knows that %j names no language", (text) => {
    expect(readLocale(text)).toBeUndefined();
  });
});

test.each([
  ["zh-TW", ["zh-Hant-TW", "zh-Hant"]],
  ["zh-Hans", ["zh-Hans"]],
  ["es-MX", ["es-Latn-MX", "es-Latn-419", "es-Latn"]],
  ["es-419", ["es-Latn-419", "es-Latn"]],
  ["pt-AO", ["pt-Latn-AO", "pt-Latn"]],
  ["nb-NO", ["no-Latn-NO", "no-Latn"]],
])("%s belongs to %j", (locale, languages) => {
  expect(languagesOf(readLocale(locale) as LocaleMeaning)).toEqual(languages);
});

test("invented locales leave those that exist as fast and as right", () => {
  for (let n = 0; n < 5_000; n++) readLocale(`de-x-${n}`);
  expect(readLocale("zh_HK")).toMatchObject({ tag: "zh-HK", script: "Hant" });
});
