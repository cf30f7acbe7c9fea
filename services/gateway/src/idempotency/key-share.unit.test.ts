import { createLogger, HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createKeyShare } from "./key-share.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));
const log = createLogger({ service: "test", level: "silent" });
const minute = 60_000;

/** A bucket, by default for 100 keys, whose fill the test sets. It removes an expired record a second late, as the broker may. */
const shareOf = (maxBytes = 20_000, gateways = 1) => {
  const state = { time: 0, bytes: 0, fullest: 0, unavailable: false };
  const fill = async () => {
    if (state.unavailable) throw new HeraldError("bus-unavailable", "unavailable");
    return { bytes: state.bytes, maxBytes };
  };
  const newShare = () => createKeyShare({ fill, now: () => new Date(state.time), log });
  const share = newShare();
  const shares = [share, ...Array.from({ length: gateways - 1 }, newShare)];
  const ends: { readonly at: number; readonly bytes: number }[] = [];
  /** Writes `times` records, `everyMs` apart, and returns how many got the full lifetime. */
  const use = async (owner: string, times: number, { bytes = 200, everyMs = 10_000 } = {}) => {
    let kept = 0;
    for (let index = 0; index < times; index++) {
      state.time += everyMs;
      for (; (ends[0]?.at ?? Number.POSITIVE_INFINITY) <= state.time; ends.shift()) state.bytes -= ends[0]?.bytes ?? 0;
      const ttl = shares[index % gateways]?.use(owner, bytes);
      await settle();
      if (ttl === 0) continue;
      state.bytes += bytes;
      state.fullest = Math.max(state.fullest, state.bytes);
      if (ttl === undefined) kept++;
      else {
        expect(ttl).toBeGreaterThanOrEqual(1_000);
        expect(ttl).toBeLessThanOrEqual(10 * minute);
        ends.push({ at: state.time + ttl + 1_000, bytes });
        ends.sort((one, other) => one.at - other.at);
      }
    }
    return kept;
  };
  return { state, use, share };
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

test.each([100, 300, 2_000])("responses of 32 KB, %i a second, leave a bucket room", async (perSecond) => {
  const maxBytes = 32 * 1_048_576;
  const { state, use } = shareOf(maxBytes);
  expect(await use("victim", 20, { everyMs: 1 })).toBe(20);
  await use("attacker", 20 * perSecond, { bytes: 32_400, everyMs: 1_000 / perSecond });
  expect(state.fullest).toBeGreaterThan(maxBytes / 2);
  expect(state.fullest).toBeLessThan(0.7 * maxBytes);
  expect(await use("victim", 20, { everyMs: 1 })).toBe(20);
});

test("gateways that write quickly measure what the others write", async () => {
  const maxBytes = 32 * 1_048_576;
  const { state, use } = shareOf(maxBytes, 3);
  await use("attacker", 3_000, { bytes: 32_400, everyMs: 3 });
  expect(state.fullest).toBeLessThan(0.95 * maxBytes);
});

test("what must be written is written for as long as it is needed, and the rest only if there is room", async () => {
  const { state, share } = shareOf();
  share.use("busy", 0);
  await settle();
  expect(share.use("busy", 10_000)).toBeUndefined();
  state.time += 1_000;
  expect(share.use("busy", 2_000)).toBeGreaterThan(1_000);
  expect(share.use("busy", 2_000)).toBe(0);
  expect(share.use("busy", 2_000, 10_000)).toBe(10_000);
  expect(share.use("other", 200)).toBeUndefined();
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
