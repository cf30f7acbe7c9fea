import { expect, test } from "vitest";
import { parseRetryAfter } from "./retry-after.ts";

const now = new Date("2026-03-01T12:00:00Z");

test.each<[string | undefined, number | undefined]>([
  [undefined, undefined],
  ["", undefined],
  ["0", 0],
  ["30", 30_000],
  [" 30 ", 30_000],
  ["86401", 86_400_000],
  ["999999999999999", 86_400_000],
  ["9999999999999999", undefined],
  ["-1", undefined],
  ["1.5", undefined],
  ["1e3", undefined],
  ["0x10", undefined],
  ["30 seconds", undefined],
  ["Sun, 01 Mar 2026 12:00:45 GMT", 45_000],
  ["Sun, 01 Mar 2026 11:59:00 GMT", 0],
  ["Sun, 01 Mar 2036 12:00:00 GMT", 86_400_000],
  ["Sun, 99 Mar 2026 12:00:45 GMT", undefined],
  ["2026-03-01T12:00:45Z", undefined],
  ["tomorrow", undefined],
])("%j is %j ms", (header, wait) => {
  expect(parseRetryAfter(header, now)).toBe(wait);
});
