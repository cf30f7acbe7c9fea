import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createSpeedLimit } from "./speed-limit.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

type Transfer = {
  readonly bytes: number;
  readonly everyS: number;
  readonly busyS?: number;
  readonly least?: () => number;
};

/** Transfers so many bytes every so many seconds, of which Herald is busy for some. Resolves to how it ended. */
const ending = async ({ bytes, everyS, busyS = 0, least }: Transfer) => {
  const { wait } = createSpeedLimit(() => new Error("too slow"), least);
  const going = (async () => {
    for (let left = 600; left > 0; left -= everyS) {
      await after(1_000 * busyS);
      await wait(after(1_000 * (everyS - busyS)), () => bytes);
    }
    return "completed";
  })().catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(700_000);
  return going;
};

test("who transfers next to nothing is ended within two minutes", async () => {
  expect(await ending({ bytes: 1, everyS: 20 })).toBe("too slow");
  expect(await ending({ bytes: 0, everyS: 600 })).toBe("too slow");
  expect(await ending({ bytes: 500, everyS: 1 })).toBe("too slow");
  expect(await ending({ bytes: 100_000, everyS: 200 })).toBe("too slow");
});

test("who pauses, or is slow because Herald is, goes on", async () => {
  expect(await ending({ bytes: 1_100, everyS: 1 })).toBe("completed");
  expect(await ending({ bytes: 100_000, everyS: 50 })).toBe("completed");
  expect(await ending({ bytes: 1_100, everyS: 100, busyS: 99 })).toBe("completed");
});

test("who holds what others need must be faster", async () => {
  expect(await ending({ bytes: 2_100, everyS: 1, least: () => 32_768 })).toBe("too slow");
  expect(await ending({ bytes: 33_000, everyS: 1, least: () => 32_768 })).toBe("completed");
});

test("no timer is left", async () => {
  const { wait } = createSpeedLimit(() => new Error("too slow"));
  expect(await wait(Promise.resolve("bytes"), ({ length }) => length)).toBe("bytes");
  expect(vi.getTimerCount()).toBe(0);
});
