import { createLogger, HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createKeyShare } from "./key-share.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));
const log = createLogger({ service: "test", level: "silent" });
const minute = 60_000;

/** A bucket of 100 keys' worth, with what the test says in it. */
const shareOf = () => {
  const state = { time: 0, bytes: 0, away: false };
  const fill = async () => {
    if (state.away) throw new HeraldError("bus-away", "away");
    return { bytes: state.bytes, maxBytes: 20_000 };
  };
  const share = createKeyShare({ fill, now: () => new Date(state.time), log });
  const use = async (owner: string, times: number) => {
    let kept = 0;
    for (let index = 0; index < times; index++) {
      state.time += 10_000;
      const ttl = share.use(owner);
      await settle();
      if (ttl === undefined) {
        kept++;
        state.bytes += 200;
      } else expect(ttl).toBe(10 * minute);
    }
    return kept;
  };
  return { state, use };
};

test("one alone fills half and no more, and others still find room", async () => {
  const { use } = shareOf();
  const busy = await use("busy", 500);
  expect(busy).toBeGreaterThan(45);
  expect(busy).toBeLessThan(56);
  expect(await use("other", 20)).toBe(20);
  expect(await use("busy", 50)).toBe(0);
  expect(await use("third", 5)).toBe(5);
});

test("what is a day old counts no more", async () => {
  const { state, use } = shareOf();
  await use("busy", 500);
  state.time += 26 * 60 * minute;
  state.bytes = 0;
  expect(await use("busy", 20)).toBe(20);
});

test("a bucket that cannot be measured gives everybody what it gives", async () => {
  const { state, use } = shareOf();
  state.away = true;
  expect(await use("busy", 500)).toBe(500);
});
