import { parseTarget } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countedFacets, facetsOf, pairFacet, scalarText, topicFacet, topicsOfFacets } from "./facets.ts";
import { matches } from "./matches.ts";

describe("facets of a device", () => {
  test.each([
    { name: "topics", device: { topics: ["news", "a.b"] }, facets: ["t:news", "t:a.b"] },
    { name: "a string", device: { metadata: { plan: "pro" } }, facets: ["m:plan=pro"] },
    { name: "a number and its text", device: { metadata: { a: 1, b: "1" } }, facets: ["m:a=1", "m:b=1"] },
    { name: "a boolean", device: { identifiers: { beta: true } }, facets: ["i:beta=true"] },
    { name: "nested values", device: { metadata: { a: { b: { c: 1.5 } } } }, facets: ["m:a.b.c=1.5"] },
    { name: "an empty text", device: { metadata: { a: "" } }, facets: ["m:a="] },
    { name: "no list, no null, no empty object", device: { metadata: { a: [1], b: null, c: {} } }, facets: [] },
    { name: "a value with the sign that splits", device: { metadata: { a: "x=y" } }, facets: ["m:a=x=y"] },
    { name: "no key with the sign that splits", device: { metadata: { "a=b": "c" } }, facets: [] },
    { name: "256 bytes", device: { metadata: { a: "x".repeat(256) } }, facets: [`m:a=${"x".repeat(256)}`] },
    { name: "no 257 bytes", device: { metadata: { a: "x".repeat(257) } }, facets: [] },
    { name: "bytes, not characters", device: { metadata: { a: "é".repeat(129) } }, facets: [] },
  ])("$name", ({ device, facets }) => {
    expect(facetsOf({ topics: [], metadata: {}, identifiers: {}, ...device })).toEqual([...facets, "z:none"]);
  });

  test.each([
    { zone: "europe/berlin", facet: "z:Europe/Berlin" },
    { zone: "Mars/Olympus", facet: "z:none" },
    { zone: "__proto__", facet: "z:none" },
    { zone: 5, facet: "z:none" },
  ])("name the time zone $zone once for all spellings", ({ zone, facet }) => {
    expect(facetsOf({ topics: [], metadata: {}, identifiers: { current_time_zone: zone } }).at(-1)).toBe(facet);
  });

  test.each([
    { locale: "zh_TW", facets: ["l:zh-Hant-TW", "l:zh-Hant"] },
    { locale: "zh-hant-tw", facets: ["l:zh-Hant-TW", "l:zh-Hant"] },
    { locale: "es-MX", facets: ["l:es-Latn-MX", "l:es-Latn-419", "l:es-Latn"] },
    { locale: "iw", facets: ["l:he-Hebr"] },
    { locale: "English", facets: [] },
    { locale: ["de"], facets: [] },
  ])("name the locale $locale by what it means, outside of the limit", ({ locale, facets }) => {
    const found = facetsOf({ topics: [], metadata: {}, identifiers: { current_locale: locale } });
    expect(found).toEqual([...facets, "z:none"]);
    expect(countedFacets(found)).toBe(0);
  });

  test("give back the topics", () => {
    const facets = facetsOf({ topics: ["b", "a"], metadata: { t: "x" }, identifiers: {} });
    expect(topicsOfFacets(facets)).toEqual(["b", "a"]);
  });

  test("a key named like a prototype's is a key", () => {
    const metadata = JSON.parse('{"__proto__":"x","constructor":"y"}');
    expect(facetsOf({ topics: [], metadata, identifiers: {} })).toEqual(["m:__proto__=x", "m:constructor=y", "z:none"]);
  });
});

const id = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";
const long = "x".repeat(300);

describe("matches", () => {
  const device = {
    id,
    platform: "ios",
    token: "t1",
    facets: new Set(facetsOf({ topics: ["news"], metadata: { n: 1, plan: "pro" }, identifiers: { os: "17" } })),
    metadata: { n: 1, plan: "pro", bio: long, list: [long], deep: { bio: long } },
    identifiers: { os: "17" },
  } as const;
  const pair = (of: "metadata" | "identifiers", path: string, value: string) =>
    ({ kind: "pair", of, path, value, source: "" }) as const;

  test.each([
    { target: { kind: "all" as const, source: "" }, yes: true },
    { target: { kind: "device" as const, id, source: "" } as const, yes: true },
    { target: { kind: "device" as const, id: "dev_06bq4ghm31tz5d2ns8y7k9w0ad", source: "" } as const, yes: false },
    { target: { kind: "token" as const, token: "t1", source: "" }, yes: true },
    { target: { kind: "token" as const, token: "t2", source: "" }, yes: false },
    { target: { kind: "topic" as const, name: "news", source: "" }, yes: true },
    { target: { kind: "topic" as const, name: "new", source: "" }, yes: false },
    { target: pair("metadata", "n", "1"), yes: true },
    { target: pair("metadata", "plan", "pro"), yes: true },
    { target: pair("metadata", "plan", "free"), yes: false },
    { target: pair("identifiers", "plan", "pro"), yes: false },
    { target: pair("identifiers", "os", "17"), yes: true },
    { target: pair("metadata", "bio", long), yes: true },
    { target: pair("metadata", "deep.bio", long), yes: true },
    { target: pair("metadata", "bio", `${long}y`), yes: false },
    { target: pair("metadata", "list", long), yes: false },
    { target: pair("metadata", "list.0", long), yes: false },
    { target: pair("metadata", "constructor.name", long), yes: false },
  ])("$target.kind $target.path $target.name: $yes", ({ target, yes }) => {
    expect(matches(target, device)).toBe(yes);
  });

  const zhTw = { current_locale: "zh-TW", current_time_zone: "Asia/Kolkata" };
  const reader = {
    ...device,
    facets: new Set(facetsOf({ topics: [], metadata: {}, identifiers: zhTw })),
    identifiers: zhTw,
  };
  const condition = (text: string) => {
    const parsed = parseTarget(`condition:${text}`);
    if ("problem" in parsed) throw new Error(parsed.problem);
    return parsed.target;
  };
  test.each([
    ...[["zh-TW"], ["zh_tw"], ["zh-Hant"], ["zh-Hant-TW"], ["zh_TW_#Hant"]].map(([value]) => [value, true] as const),
    ...[["zh"], ["zh-Hans"], ["zh-Hans-TW"], ["zh-HK"], ["Chinese"], [""]].map(([value]) => [value, false] as const),
  ])("a target on the locale %j finds a reader of Taiwan: %s", (value = "", yes) => {
    expect(matches(pair("identifiers", "current_locale", value), reader)).toBe(yes);
    expect(matches(condition(`identifiers.current_locale == '${value}'`), reader)).toBe(yes);
    expect(matches(condition(`identifiers.current_locale != '${value}'`), reader)).toBe(!yes);
    expect(matches(condition(`identifiers.current_locale in ['ja', '${value}']`), reader)).toBe(yes);
  });

  test.each([
    ["asia/calcutta", true],
    ["Asia/Kolkata", true],
    ["Asia/Colombo", false],
    ["none", false],
    ["IST", false],
  ])("a target on the time zone %j finds a device in India: %s", (value, yes) => {
    expect(matches(pair("identifiers", "current_time_zone", value), reader)).toBe(yes);
    expect(matches(condition(`identifiers.current_time_zone == '${value}'`), reader)).toBe(yes);
  });

  test("a pair matches exactly the devices whose scalar at the path has that text", () => {
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant("x".repeat(257)));
    const key = fc.string({ minLength: 1, maxLength: 3 }).filter((text) => !/[.=]|^\$/.test(text));
    fc.assert(
      fc.property(fc.dictionary(key, scalar, { maxKeys: 4 }), key, scalar, (metadata, path, value) => {
        const candidate = {
          id,
          platform: "ios",
          token: "",
          metadata,
          facets: new Set(facetsOf({ topics: [], metadata, identifiers: {} })),
        } as const;
        const has = Object.hasOwn(metadata, path) && scalarText(metadata[path]) === String(value);
        expect(matches(pair("metadata", path, String(value)), candidate)).toBe(has);
      }),
    );
  });
});

test("a pair and a topic never have the same facet", () => {
  expect(pairFacet("metadata", "t:news", "x")).not.toBe(topicFacet("news"));
  expect(pairFacet("metadata", "a", "\ud800")).toBe("m:a=\ufffd");
});
