import { type DeviceId, parseTarget, pushTokenHash, type Target } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { assign, audienceOf, indexedTargets, isDirect, neededBy, wantedKeys } from "./audience.ts";
import { checkMatches } from "./matches.ts";

const one = "dev_06bq4ghm31tz5d2ns8y7k9w0ac" as DeviceId;
const two = "dev_06bq4ghm31tz5d2ns8y7k9w0ad" as DeviceId;
const long = "x".repeat(300);

const targets = (...sources: string[]): Target[] =>
  sources.map((source) => {
    const parsed = parseTarget(source);
    if ("problem" in parsed) throw new Error(parsed.problem);
    return parsed.target;
  });

describe("lookups of an audience", () => {
  test("one of each kind of direct target", () => {
    const lookups = audienceOf(targets(one, `device:${two}`, "token:abc", one));
    expect(lookups).toEqual([
      { by: "ids", ids: [one, two], targets: [0, 3, 1] },
      { by: "tokens", hashes: [pushTokenHash("abc")], targets: [2] },
    ]);
    expect(isDirect(lookups)).toBe(true);
  });

  test("topics and pairs share a lookup, each facet once", () => {
    const lookups = audienceOf(targets("news", "topic:news", "metadata:plan=pro", "identifiers:os=17"));
    expect(lookups).toEqual([{ by: "facets", facets: ["t:news", "m:plan=pro", "i:os=17"], targets: [0, 1, 2, 3] }]);
    expect(isDirect(lookups)).toBe(false);
  });

  test("a thousand topics are a few lookups, and none is lost", () => {
    const lookups = audienceOf(targets(...Array.from({ length: 1000 }, (_, at) => `topic:t${at}`)));
    expect(lookups).toHaveLength(16);
    expect(lookups.flatMap((lookup) => lookup.targets).sort((a, b) => a - b)).toEqual([...Array(1000).keys()]);
  });

  test("`all` replaces lookups of devices that it finds anyway", () => {
    expect(audienceOf(targets("news", "all", one, "token:abc"))).toEqual([{ by: "all", targets: [0, 1, 2, 3] }]);
  });

  test("a value that is too long for a facet is looked up in the documents, beside `all` too", () => {
    const scan = { by: "conditions", facets: undefined, targets: [0] };
    expect(audienceOf(targets(`metadata:a.b=${long}`))).toEqual([scan]);
    expect(audienceOf(targets(`metadata:a.b=${long}`, "all"))).toEqual([scan, { by: "all", targets: [1] }]);
  });

  test("a thousand such values, and conditions without an index, are one scan", () => {
    const values = Array.from({ length: 999 }, (_, at) => `metadata:a=${long}${at}`);
    const lookups = audienceOf(targets(...values, "condition:platform == 'ios'"));
    expect(lookups).toMatchObject([{ by: "conditions", facets: undefined, targets: [...Array(1000).keys()] }]);
  });

  test("conditions are looked up by the facets of their positive clauses, the others in one scan", () => {
    const sources = [
      "condition:'a' in topics && metadata.n != 1",
      "condition:metadata.plan == 'pro' || 'b' in topics",
      "condition:!('a' in topics)",
      `condition:metadata.bio == '${long}'`,
    ];
    const kinds = audienceOf(targets(...sources)).map((lookup) =>
      lookup.by === "conditions" ? { facets: lookup.facets, targets: lookup.targets } : lookup.by,
    );
    expect(kinds).toEqual([
      { facets: ["t:a", "m:plan=pro", "t:b"], targets: [0, 1] },
      { facets: undefined, targets: [2, 3] },
    ]);
    expect(isDirect(audienceOf(targets(...sources)))).toBe(false);
  });

  test("a condition of two hundred topics is a few lookups, and none is lost", () => {
    const any = Array.from({ length: 200 }, (_, at) => `'t${at}' in topics`).join(" || ");
    const lookups = audienceOf(targets("one", `condition:${any}`));
    const own = lookups.filter((lookup) => lookup.by === "conditions");
    expect(own).toHaveLength(4);
    expect(new Set(own.flatMap(({ facets }) => facets ?? [])).size).toBe(200);
    for (const lookup of own) expect(lookup.targets).toEqual([1]);
  });

  test.each(["$where", "a.$gt", "a..b", ".a", "a.", "a\0"])("the path %j is not looked up", (path) => {
    expect(audienceOf(targets(`metadata:${path}=${long}`))).toEqual([]);
  });
});

describe("targets that matched", () => {
  const device = (id: DeviceId, token: string, ...facets: string[]) => ({
    id,
    platform: "ios" as const,
    token,
    facets: new Set(facets),
    metadata: { a: token },
  });
  const confirmed = async (list: Target[], found: ReturnType<typeof device>[], yieldIfDue = () => undefined) => {
    const confirming = { targets: list, candidateOf: (row: (typeof found)[number]) => row, yieldIfDue };
    const matched = audienceOf(list).map(async (lookup) => (await checkMatches(lookup, found, confirming)).matched);
    return (await Promise.all(matched)).flat();
  };

  test.each([
    { sources: ["all", "news", "sport"], found: [device(one, "a", "t:news")], positions: [0, 1] },
    { sources: ["all", "news"], found: [], positions: [] },
    { sources: ["all", one, two, "token:a", "token:b"], found: [device(one, "b")], positions: [0, 1, 4] },
    { sources: ["news", "sport", "metadata:n=1"], found: [device(one, "a", "t:sport", "m:n=1")], positions: [1, 2] },
    { sources: ["news", "topic:news"], found: [device(one, "a")], positions: [0, 1] },
    { sources: ["news"], found: [], positions: [] },
    { sources: [one, two], found: [device(two, "a")], positions: [1] },
    { sources: [`metadata:a=${long}`], found: [device(two, long)], positions: [0] },
    { sources: [`metadata:a=${long}`], found: [device(two, "a")], positions: [] },
    {
      sources: [
        "condition:'a' in topics",
        "condition:'b' in topics && metadata.a == 'x'",
        "condition:metadata.a > 'w'",
      ],
      found: [device(one, "x", "t:b"), device(two, "v", "t:b")],
      positions: [1, 2],
    },
  ])("$sources by $found.length devices: $positions", async ({ sources, found, positions }) => {
    expect(await confirmed(targets(...sources), found)).toEqual(positions);
  });

  test("the check of each condition and device may yield", async () => {
    let steps = 0;
    const step = () => void steps++ as undefined;
    const found = [device(one, "a"), device(two, "b")];
    await confirmed(targets("condition:platform == 'web'", "condition:metadata.a == 'c'"), found, step);
    expect(steps).toBe(4);
  });
});

describe("what targets need of a device", () => {
  test.each<[string[], string[], string[]]>([
    [["condition:platform == 'ios'"], [], []],
    [["condition:'a' in topics && !('b' in topics)", "topic:c", "user:ann"], [], ["t:a", "t:b", "t:c", "u:ann"]],
    [
      ["condition:metadata.a == 1 || identifiers.b in [1, 2]", "condition:metadata.a > 2"],
      ["metadata.a", "identifiers.b"],
      [],
    ],
    [
      ["condition:metadata.a.b == 1 || metadata.a == 1 || metadata.ab == 1 || last_seen_at > '-1d'"],
      ["metadata.a", "metadata.ab", "lastSeenAt"],
      [],
    ],
    [["condition:metadata.$where == 1 && !(metadata.a.$gt == 1)"], [], []],
    [["metadata:plan=pro", `metadata:note=${long}`, "token:abc"], ["metadata.note", "token"], ["m:plan=pro"]],
    [["all", one], [], []],
  ])("%j: %j, %j", (sources, paths, facets) => {
    expect(neededBy(targets(...sources))).toEqual({ paths, facets });
  });
});

/** None for a send without an index. */
const keysOfSend = (sources: readonly string[]) => indexedTargets(sources)?.keys ?? [];

describe("the keys of small sends", () => {
  test("are wanted once each", () => {
    const keys = [
      keysOfSend([one, "token:x", "metadata:plan=pro"]),
      keysOfSend([two, "user:ada", `device:${one}`, "metadata:plan=pro", "identifiers:os=17"]),
    ].flat();
    expect(wantedKeys(keys)).toEqual({
      ids: [one, two],
      hashes: [pushTokenHash("x")],
      facets: ["m:plan=pro", "u:ada", "i:os=17"],
    });
  });

  test.each(["all", "news", "topic:news", "condition:'a' in topics", `metadata:bio=${"x".repeat(300)}`, "what:is"])(
    "are missing for %s: that goes the way of large sends",
    (target) => expect(indexedTargets([one, target])).toBeUndefined(),
  );

  test("exclude what no device can have", () => {
    const keys = keysOfSend(["metadata:a..b=1", `metadata:$where=${"x".repeat(300)}`]);
    expect(wantedKeys(keys)).toEqual({ ids: [], hashes: [], facets: ["m:a..b=1"] });
  });
});

describe("the devices of a send", () => {
  const rows = new Map([
    [one as string, [{ _id: one }]],
    ["m:plan=pro", [{ _id: one }, { _id: two }]],
  ]);

  test("appear once each, and targets without a device are known", () => {
    const keys = keysOfSend([one, "metadata:plan=pro", "token:gone"]);
    const { devices, matched } = assign(keys, rows);
    expect(devices.map(({ _id }) => _id)).toEqual([one, two]);
    expect([...matched]).toEqual([0, 1]);
  });

  test("are empty if nothing matches", () => {
    const keys = keysOfSend([two]);
    expect(assign(keys, rows)).toEqual({ devices: [], matched: new Set() });
  });
});
