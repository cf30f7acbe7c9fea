import { bucketCount, newNotificationId } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { emptyTally, type Failures, type Tally } from "./notification-counts.ts";
import {
  bucketsOfPart,
  decideNextPart,
  nextPartAt,
  outcomesOf,
  pacedFrom,
  planRollout,
  type RolloutProgress,
  shownProgress,
} from "./rollout.ts";

const id = newNotificationId(new Date());
const stopIf = { failed: 0.05 };

const progressOf = (plan: Partial<RolloutProgress> = {}): RolloutProgress => ({
  ...{ audience: 409_600, start: 0, canary: 0, waitMs: 0, width: 10, begun: 1 },
  past: { n: 0, batches: 0, devices: 0 },
  ...plan,
});

describe("the parts of a rollout", () => {
  test("have each bucket once, whatever the audience, and their first is the canary", () => {
    const rollout = fc.record(
      {
        canary: fc.record({ share: fc.double({ min: 1 / bucketCount, max: 0.5, noNaN: true }) }),
        per_minute: fc.integer({ min: 1, max: 10_000_000 }),
        stop_if: fc.constant(stopIf),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        rollout,
        fc.integer({ min: 0, max: 5_000_000 }),
        fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
        (settings, audience, at) => {
          const plan = planRollout(newNotificationId(at), settings, audience);
          const found: number[] = [];
          const widths: number[] = [];
          for (let n = 0; ; n++) {
            const part = bucketsOfPart(plan, n);
            if (!part) break;
            widths.push(part.to - part.from + 1);
            for (let bucket = part.from; bucket <= part.to; bucket++) found.push(bucket);
          }
          if (settings.canary) expect(widths.shift()).toBe(plan.canary);
          expect(Math.min(...widths)).toBeGreaterThan(0);
          expect(Math.max(...widths)).toBeLessThanOrEqual(plan.width);
          expect(found.toSorted((one, other) => one - other)).toEqual(
            Array.from({ length: bucketCount }, (_, at) => at),
          );
        },
      ),
      { numRuns: 20 },
    );
  });

  test.each([
    ["a millionth of the speed", { per_minute: 2_500 }, 1_000_000, 2],
    ["ten seconds of the speed", { per_minute: 60_000 }, 1_000_000, 41],
    ["all that is left", { canary: { share: 0.01 } }, 1_000_000, bucketCount],
    ["an eighth, with a limit alone", { stop_if: stopIf }, 1_000_000, 512],
    ["what can be judged, of few devices", { stop_if: stopIf }, 2_000, 2_048],
    ["a whole audience that is empty", { per_minute: 60 }, 0, bucketCount],
  ])("are as wide as %s", (_name, settings, audience, width) => {
    expect(planRollout(id, settings, audience).width).toBe(width);
  });

  test("have four times as many devices as the one before them, from what can be judged to an eighth", () => {
    const widths = (settings: Parameters<typeof planRollout>[1]) => {
      const plan = { ...planRollout(id, settings, 1_000_000), start: 0 };
      return Array.from({ length: 10 }, (_, n) => bucketsOfPart(plan, n)).map(
        (part) => part && part.to - part.from + 1,
      );
    };
    expect(widths({ stop_if: stopIf })).toEqual([5, 20, 80, 320, 512, 512, 512, 512, 512, 512]);
    expect(widths({ stop_if: stopIf, canary: { share: 0.01, wait: "1m" } }).slice(0, 4)).toEqual([41, 5, 20, 80]);
    expect(new Set(widths({ stop_if: stopIf, per_minute: 60_000 }))).toEqual(new Set([41]));
  });

  test("begin at the end of the ring and go on at its beginning", () => {
    const plan = { ...progressOf(), start: 4_090, width: 10 };
    expect([0, 1, 2].map((n) => bucketsOfPart(plan, n))).toEqual([
      { from: 4_090, to: 4_095 },
      { from: 0, to: 9 },
      { from: 10, to: 19 },
    ]);
    expect(bucketsOfPart(plan, 409)).toEqual({ from: 4_080, to: 4_089 });
    expect(bucketsOfPart(plan, 410)).toBeUndefined();
  });

  test("begin as late as their speed and the canary ask for", () => {
    const at = new Date(0);
    expect(nextPartAt(progressOf({ perMinute: 6_000 }), { n: 3, at, devices: 1_000 })).toEqual(new Date(10_100));
    expect(nextPartAt(progressOf({ canary: 4, waitMs: 600_000 }), { n: 0, at, devices: 390 })).toEqual(
      new Date(600_000),
    );
    expect(nextPartAt(progressOf({ canary: 4, waitMs: 600_000 }), { n: 1, at, devices: 390 })).toEqual(at);
  });
});

test.each([
  [0, 0],
  [999, 0],
  [1_000, 1_000],
  [60_000, 60_000],
])("a part that begins %d ms late delays the next one by %d ms", (late, delayed) => {
  expect(pacedFrom(new Date(5_000), new Date(5_000 + late))).toEqual(new Date(5_000 + delayed));
});

describe("the next part", () => {
  const decided = (
    change: Partial<Tally>,
    {
      failures = {},
      paused = 0,
      before,
      released,
    }: { failures?: Failures; paused?: number; before?: object; released?: number } = {},
    settings: Parameters<typeof decideNextPart>[0] = { stop_if: stopIf },
  ) => {
    const tally = { ...emptyTally, ...change };
    const settled = tally.accepted + tally.failed + tally.expired;
    const progress = progressOf({ ...(before && { before: before as RolloutProgress["before"] }) });
    const open = { devices: (released ?? settled) - settled, paused };
    return decideNextPart(settings, progress, { open, counts: { tally, failures } });
  };

  test.each([
    ["too few outcomes, and no others to come", { accepted: 40, failed: 9 }, {}, undefined],
    ["too few outcomes", { accepted: 40, failed: 9 }, { released: 50 }, { held: "few-outcomes" }],
    ["enough outcomes", { accepted: 40, failed: 10 }, {}, { stop: "10 of 50 devices failed: 20 %, more than 5 %" }],
    ["exactly the limit", { accepted: 95, failed: 5 }, {}, undefined],
    ["apps that are gone", { accepted: 50, failed: 50 }, { failures: { unregistered: 50 } }, undefined],
    [
      "failures before the last resume",
      { accepted: 100, failed: 50 },
      { before: { outcomes: 100, failed: 50 } },
      undefined,
    ],
    ["two parts without outcomes", { accepted: 60 }, { released: 60 + 2_001 }, { held: "throttled" }],
    ["a paused provider", { accepted: 60 }, { released: 2_061, paused: 1 }, { held: "provider-paused" }],
    ["one part without outcomes", { accepted: 60 }, { released: 60 + 1_000 }, undefined],
  ])("is judged by %s", (_name, tally, more, expected) => {
    expect(decided(tally, more)).toEqual(expected);
  });

  test.each([
    [1, 401],
    [2, 1_601],
    [3, 2_001],
    [9, 2_001],
  ])("after %d parts that grow is held by twice the devices of the last one", (begun, open) => {
    const progress = { ...progressOf(), grows: 2, begun };
    const counts = { tally: { ...emptyTally, accepted: 60 }, failures: {} };
    const held = (devices: number) =>
      decideNextPart({ stop_if: stopIf }, progress, { open: { devices, paused: 0 }, counts });
    expect([held(open - 1), held(open)]).toEqual([undefined, { held: "throttled" }]);
  });

  test("counts apps that are gone where that was asked for", () => {
    const rollout = { stop_if: { failed: 0.05, unregistered: true } } as const;
    expect(decided({ accepted: 50, failed: 50 }, { failures: { unregistered: 50 } }, rollout)).toHaveProperty("stop");
  });

  test("without a limit only waits for the others", () => {
    const open = { devices: 1, paused: 0 };
    const counts = { tally: { ...emptyTally, failed: 100 }, failures: {} };
    expect(decideNextPart({ per_minute: 6_000 }, progressOf({ perMinute: 6_000 }), { open, counts })).toBeUndefined();
  });
});

test("outcomes are what was accepted or failed", () => {
  const tally = { ...emptyTally, accepted: 7, failed: 3, expired: 5 };
  expect(outcomesOf({ stop_if: stopIf }, { tally, failures: { unregistered: 1 } })).toEqual({
    outcomes: 10,
    failed: 2,
  });
});

test.each([
  ["scheduled", 1, [{ at: new Date(0) }], "waiting"],
  ["expanding", 1, [{ at: new Date(0) }], "canary"],
  ["scheduled", 1, [{ at: new Date(0), devices: 100 }, { at: new Date(60_000) }], "waiting"],
  ["expanding", 2, [{ at: new Date(0), devices: 100 }, { at: new Date(60_000) }], "rolling"],
  ["scheduled", 3, [{ at: new Date(0), devices: 100 }, { at: new Date(60_000) }], "rolling"],
  ["delivering", 9, [{ at: new Date(0), devices: 100 }], "done"],
  [undefined, 9, [{ at: new Date(0), devices: 100 }], "done"],
])("in the step %s, with %d begun, it shows its phase", (step, begun, parts, phase) => {
  const shown = shownProgress(progressOf({ canary: 4, begun }), parts, { step, nextAt: new Date(60_000) });
  expect(shown.phase).toBe(phase);
  expect(shown.rate).toBe(parts[1]?.at && parts[0]?.devices ? 100 : undefined);
  expect(shown.next_at).toBe(step === "scheduled" ? "1970-01-01T00:01:00.000Z" : undefined);
});
