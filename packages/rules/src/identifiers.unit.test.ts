import { expect, test } from "vitest";
import { readIdentifiers } from "./identifiers.ts";

const zone = "must be an IANA time zone such as Europe/Berlin";
const locale = "must be a BCP 47 locale such as de or pt-BR, of at most 35 characters without extensions";
const tokyo = { current_time_zone: "Asia/Tokyo", current_locale: "ja" };

test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ["their own names", tokyo, tokyo],
  ["no values of Herald's", { app_version: "2.4.1", zone: "x" }, { app_version: "2.4.1", zone: "x" }],
  ["the first other name", { time_zone: "Asia/Tokyo", locale: "ja" }, tokyo],
  ["the second other name", { timezone: "Asia/Tokyo", language: "ja" }, tokyo],
  ["a removal by another name", { timezone: null, language: null }, { current_time_zone: null, current_locale: null }],
  ["iOS's spelling", { current_locale: "zh_Hant_HK" }, { current_locale: "zh-Hant-HK" }],
  ["iOS's keywords", { locale: "de_DE@rg=atzzzz" }, { current_locale: "de-DE" }],
  ["Java's script", { language: "zh_CN_#Hans" }, { current_locale: "zh-Hans-CN" }],
])("reads %s", (_, sent, identifiers) => {
  expect(readIdentifiers(sent)).toEqual({ identifiers, problems: [] });
});

test("leaves another name to the app when Herald's own is there", () => {
  const sent = { current_locale: "de", language: "German (Austria)", current_time_zone: "UTC", timezone: 2 };
  expect(readIdentifiers(sent)).toEqual({ identifiers: sent, problems: [] });
});

test.each<[string, unknown, string]>([
  ["current_time_zone", "Mars/Olympus", zone],
  ["time_zone", "+02:00", zone],
  ["timezone", "", zone],
  ["current_time_zone", "Europe/Berlin\0", zone],
  ["current_time_zone", `Europe/${"x".repeat(100_000)}`, zone],
  ["time_zone", "__proto__", zone],
  ["current_time_zone", 2, zone],
  ["current_time_zone", { name: "UTC" }, zone],
  ["current_locale", "", locale],
  ["language", "German (Austria)", locale],
  ["current_locale", `de@${"x".repeat(200)}`, locale],
  ["current_locale", ["de"], locale],
])("leaves out %s: %j", (name, value, message) => {
  expect(readIdentifiers({ [name]: value, model: "Pixel 9" })).toEqual({
    identifiers: { model: "Pixel 9" },
    problems: [{ field: `identifiers.${name}`, message }],
  });
});
