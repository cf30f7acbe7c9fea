import {
  audienceRequests,
  type CountedRules,
  type DeviceId,
  type ProjectId,
  pagesOfExpansion,
} from "@herald/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ExpandTest, many, sorted, startExpandTest } from "./expand-fixture.ts";

let t: ExpandTest;
let projectId: ProjectId;
beforeAll(async () => {
  t = await startExpandTest();
});
afterAll(() => t.stop());
beforeEach(async () => {
  projectId = await t.newProject();
});

const zones = ["Asia/Tokyo", "Europe/Berlin", undefined] as const;
const zoneAt = (at: number) => zones[at % 5] ?? zones[(at % 5) - 3];

/** Devices in two time zones and without one, and every third in a topic. */
const zoned = (count: number) =>
  many(count, (at) => (at % 3 === 0 ? ["rare", "news"] : ["news"])).map((device, at) => ({
    ...device,
    identifiers: { ...(zoneAt(at) && { current_time_zone: zoneAt(at) }) },
  }));

describe("a wave of a large audience", () => {
  let large: ProjectId;
  let ids: DeviceId[];
  beforeAll(async () => {
    large = await t.newProject();
    ids = await t.seed(zoned(6_000));
  });
  beforeEach(() => t.about(large));

  test.each([
    ["all", ["all"], () => true],
    ["a topic", ["topic:rare"], (at: number) => at % 3 === 0],
    ["a condition", ["condition:'rare' in topics && platform == 'ios'"], (at: number) => at % 3 === 0],
    ["several targets", ["topic:rare", "condition:platform == 'web'"], (at: number) => at % 3 !== 1],
  ])("has the devices of its zones among those of %s, and all waves have each once", async (_name, targets, fits) => {
    const found: string[] = [];
    for (const [n, of] of [["Asia/Tokyo"], ["Europe/Berlin", "none"]].entries()) {
      const { end, batches, devices } = await t.expand(targets, {
        page: n * pagesOfExpansion,
        expansion: { n, zones: of },
      });
      expect(end).toMatchObject({ n, devices: devices.length });
      expect(batches[0]?.expiresAt).toBeDefined();
      const expected = ids.filter((_, at) => fits(at) && of.includes(zoneAt(at) ?? "none"));
      expect(sorted(devices)).toEqual(sorted(expected));
      for (const { batchId } of batches) expect(Math.floor(Number(batchId.split("/")[1]) / pagesOfExpansion)).toBe(n);
      found.push(...devices);
    }
    expect(sorted(found)).toEqual(sorted(ids.filter((_, at) => fits(at))));
  });

  test.each([
    [true, "topic:news", () => true],
    [false, "topic:news", () => true],
    [true, "topic:rare", (at: number) => at % 3 === 0],
    [false, "topic:rare", (at: number) => at % 3 === 0],
  ])("has the same devices by either index (%s) of %s", async (byZone, target, fits) => {
    const expansion = { n: 3, zones: ["Asia/Tokyo"], byZone, skip: "past-local-time" };
    const { batches, devices, end } = await t.expand([target], { page: 3 * pagesOfExpansion, expansion });
    expect(sorted(devices)).toEqual(sorted(ids.filter((_, at) => fits(at) && zoneAt(at) === "Asia/Tokyo")));
    expect(batches.every(({ skip }) => skip === "past-local-time")).toBe(true);
    expect(end.unmatched).toEqual([]);
  });
});

describe("a wave", () => {
  test("finds no device in its zones that a target matches, by either index", async () => {
    await t.seed([...zoned(50), { token: "other", platform: "ios", topics: ["elsewhere"] }]);
    for (const [n, byZone] of [true, false].entries()) {
      const { devices, end } = await t.expand(["topic:elsewhere"], { expansion: { n, zones: ["Asia/Tokyo"], byZone } });
      expect({ devices, unmatched: end.unmatched }).toEqual({ devices: [], unmatched: ["topic:elsewhere"] });
    }
  });

  test("says which of several targets matched a device", async () => {
    await t.seed(zoned(50));
    const { end } = await t.expand(["all", "topic:none"], { expansion: { n: 0, zones: ["Asia/Tokyo"] } });
    expect(end.unmatched).toEqual(["topic:none"]);
  });

  test("reaches single devices and tokens in its zones alone", async () => {
    const ids = await t.seed(zoned(10));
    const { devices, end } = await t.expand([...ids.slice(0, 5), "token:t5"], { expansion: { n: 0, zones: ["none"] } });
    expect(sorted(devices)).toEqual(sorted([ids[2] ?? ""]));
    expect(end.unmatched).toHaveLength(5);
  });
});

test("the zones of few devices are theirs, those of a large audience the project's", async () => {
  const ids = await t.seed(zoned(200));
  const ask = async (targets: string[]) => (await t.registry.ask(audienceRequests.zones, { projectId, targets })).zones;
  expect(await ask(["topic:news"])).toEqual(["Asia/Tokyo", "Europe/Berlin", "none"]);
  expect(await ask([ids[0] ?? ""])).toEqual(["Asia/Tokyo"]);
  expect(await ask([ids[1] ?? "", ids[2] ?? ""])).toEqual(["Europe/Berlin", "none"]);
  expect(await ask(["token:t0"])).toEqual(["Asia/Tokyo"]);
  expect(await ask(["user:nobody"])).toEqual(["none"]);
});

test("a count by zone adds up", async () => {
  await t.seed(zoned(500));
  const { devices, zones: byZone } = await t.registry.ask(audienceRequests.count, {
    projectId,
    targets: ["all"],
    byZone: true,
  });
  expect(byZone).toEqual({ "Asia/Tokyo": 200, "Europe/Berlin": 200, none: 100 });
  expect(devices.ios + devices.android + devices.web).toBe(500);
});

test("a count reads clocks as a send does: first the time that has passed, then quiet hours", async () => {
  const zoneOf = (at: number) => (at < 3 ? "Asia/Tokyo" : "Europe/Berlin");
  await t.seed(many(7).map((device, at) => ({ ...device, identifiers: { current_time_zone: zoneOf(at) } })));
  const hours = { from: "00:00", to: "06:30", mode: "delay" as const };
  const at = "2030-01-15T03:00:00.000Z";
  const usual = { hours, ownHours: false, zone: "UTC", at, expiresAt: "2030-01-15T05:30:00.001Z" };
  const ask = async (change: Partial<CountedRules>, limits = {}) => {
    const request = {
      projectId,
      targets: ["all"],
      rules: { hours: true as const },
      countedRules: { ...usual, ...change },
    };
    const { skips, delayed } = await t.registry.ask(audienceRequests.count, { ...request, ...limits });
    return { skips, delayed };
  };
  expect(await ask({})).toEqual({ skips: {}, delayed: { "2030-01-15T05:30:00.000Z": 4 } });
  expect(await ask({ expiresAt: "2030-01-15T05:30:00.000Z" })).toEqual({ skips: { "quiet-hours": 4 }, delayed: {} });
  expect(await ask({ hours: { ...hours, mode: "skip" } })).toEqual({ skips: { "quiet-hours": 4 }, delayed: {} });
  const local = { at: "2030-01-15T06:00:00", past: "skip" as const, zone: "UTC", since: at, ttlMs: 3_600_000 };
  expect(await ask({ local }, { byZone: true })).toEqual({
    skips: { "past-local-time": 3 },
    delayed: { "2030-01-15T05:30:00.000Z": 4 },
  });
});
