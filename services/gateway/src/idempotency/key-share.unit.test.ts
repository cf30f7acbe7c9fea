import { createLogger, HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createKeyShare } from "./key-share.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));
const log = createLogger({ service: "test", level: "silent" });
const minute = 60_000;

/** A bucket for 100 keys whose fill the test sets. */
const shareOf = () => {
  const state = { time: 0, bytes: 0, fullest: 0, unavailable: false };
  const fill = async () => {
    if (state.unavailable) throw new HeraldError("bus-unavailable", "unavailable");
    return { bytes: state.bytes, maxBytes: 20_000 };
  };
  const share = createKeyShare({ fill, now: () => new Date(state.time), log });
  const ends: { readonly at: number; readonly bytes: number }[] = [];
  /** Writes `times` records, `everyMs` apart, and returns how many got the full lifetime. */
  const use = async (owner: string, times: number, { bytes = 200, everyMs = 10_000 } = {}) => {
    let kept = 0;
    for (let index = 0; index < times; index++) {
      state.time += everyMs;
      for (; (ends[0]?.at ?? Number.POSITIVE_INFINITY) <= state.time; ends.shift()) state.bytes -= ends[0]?.bytes ?? 0;
      const ttl = share.use(owner, bytes);
      await settle();
      state.bytes += bytes;
      state.fullest = Math.max(state.fullest, state.bytes);
      if (ttl === undefined) kept++;
      else {
        expect(ttl).toBeGreaterThanOrEqual(1_000);
        expect(ttl).toBeLessThanOrEqual(10 * minute);
        ends.push({ at: state.time + ttl, bytes });
        ends.sort((one, other) => one.at - other.at);
      }
    }
    return kept;
  };
  return { state, use };
};

test("one owner fills at most half, and others can still store keys", async () => {
  const { use } = shareOf();
  const busy = await use("busy", 500);
  expect(busy).toBeGreaterThan(45);
  expect(busy).toBeLessThan(56);
  expect(await use("other", 20)).toBe(20);
  expect(await use("busy", 50)).toBe(0);
  expect(await use("third", 5)).toBe(5);
});

test("large responses count by their bytes", async () => {
  const { state, use } = shareOf();
  const kept = await use("busy", 500, { bytes: 2_000 });
  expect(kept).toBeGreaterThan(3);
  expect(kept).toBeLessThan(7);
  expect(state.fullest).toBeLessThan(20_000);
  expect(await use("other", 10)).toBe(10);
});

test("any number of keys never fills it, from one owner or several", async () => {
  const { state, use } = shareOf();
  for (let round = 0; round < 100; round++) for (const owner of ["a", "b", "c"]) await use(owner, 20, { everyMs: 400 });
  expect(state.fullest).toBeLessThan(20_000);
});

test("expired keys do not count", async () => {
  const { state, use } = shareOf();
  await use("busy", 500);
  state.time += 26 * 60 * minute;
  state.bytes = 0;
  expect(await use("busy", 20)).toBe(20);
});

test("a bucket that cannot be measured shortens no lifetime", async () => {
  const { state, use } = shareOf();
  state.unavailable = true;
  expect(await use("busy", 500)).toBe(500);
});
