import { expect, test } from "vitest";
import { maxAttempts, nextWebhookAttempt } from "./webhook-schedule.ts";

const now = new Date("2030-01-01T00:00:00Z");
const minute = 60_000;
const hour = 60 * minute;
const after = (attempts: number, random = 0, retryAfterMs?: number) => {
  const next = nextWebhookAttempt({ attempts, now, random, retryAfterMs });
  return next && next.getTime() - now.getTime();
};

test("the delays are as documented, with a tenth of jitter", () => {
  const delays = [5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];
  expect(delays.map((_, index) => after(index + 1))).toEqual(delays);
  expect(delays.map((_, index) => after(index + 1, 0.5))).toEqual(delays.map((delay) => delay * 1.05));
  expect(after(maxAttempts)).toBeUndefined();
  expect(maxAttempts).toBe(8);
});

test.each([
  [1, 60_000, 60_000],
  [2, 1_000, 5 * minute],
  [1, 24 * hour, 10 * hour],
  [8, 60_000, undefined],
])("after attempt %i with Retry-After of %i ms: %s", (attempts, retryAfterMs, expected) => {
  expect(after(attempts, 0, retryAfterMs)).toBe(expected);
});
