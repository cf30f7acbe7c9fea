import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxPushAttempts, nextAttemptAt } from "./retry.ts";

const now = new Date("2030-01-01T00:00:00Z");
const later = (seconds: number) => new Date(now.getTime() + seconds * 1000);
const seconds = (at: Date | undefined) => (at === undefined ? undefined : (at.getTime() - now.getTime()) / 1000);

describe("the next attempt", () => {
  test.each([
    ["the first repeat at its earliest", { attempts: 1, random: 0 }, 0.5],
    ["the first repeat at its latest", { attempts: 1, random: 0.999_999 }, 10.499],
    ["the third at its middle", { attempts: 3, random: 0.5 }, 20.5],
    ["the last at its latest", { attempts: 7, random: 0.999_999 }, 600.499],
    ["after what the provider asked for", { attempts: 1, random: 0, retryAfterMs: 30_000 }, 30],
    ["a tenth try that used no attempt, at its latest", { attempts: 0, unprocessed: 10, random: 0.999_999 }, 662],
    ["with jitter on top of it", { attempts: 1, random: 0.5, retryAfterMs: 30_000 }, 35],
  ])("%s", (_, given, expected) => {
    expect(seconds(nextAttemptAt({ now, expiresAt: later(86_400), ...given }))).toBeCloseTo(expected, 2);
  });

  test.each([
    ["the provider asks for more than is left", { retryAfterMs: 30_000, expiresAt: later(30) }],
    ["nothing is left", { expiresAt: now }],
    ["it is over", { expiresAt: later(-1) }],
  ])("none when %s", (_, given) => {
    expect(nextAttemptAt({ attempts: 1, now, random: 0.5, ...given })).toBeUndefined();
  });

  test("is never before Retry-After and always before the end, whatever is drawn", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: maxPushAttempts }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: -1_000, max: 200_000 }),
        (attempts, random, retryAfterMs, left) => {
          const expiresAt = new Date(now.getTime() + left);
          const at = nextAttemptAt({ attempts, now, retryAfterMs, expiresAt, random });
          if (at === undefined) return left <= Math.max(500, retryAfterMs);
          return at.getTime() >= now.getTime() + retryAfterMs && at > now && at < expiresAt;
        },
      ),
    );
  });
});
