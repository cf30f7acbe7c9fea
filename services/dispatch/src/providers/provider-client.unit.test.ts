import { maxTtlSeconds } from "@herald/contracts";
import { expect, test } from "vitest";
import { secondsToLive } from "../providers/provider-client.ts";

const now = new Date("2026-11-21T12:00:00Z");

test.each([
  ["whole seconds that are left", 3_600_000, 3_600],
  ["begun seconds are not whole", 3_600_999, 3_600],
  ["nothing once it is past", -1, 0],
  ["the past without an end", -now.getTime(), 0],
  ["the most that a sender may ask for", maxTtlSeconds * 1_000, maxTtlSeconds],
  ["no more than that where the other clock is ahead", maxTtlSeconds * 1_000 + 50_000, maxTtlSeconds],
])("%s", (_, left, seconds) => {
  expect(secondsToLive(new Date(now.getTime() + left), now)).toBe(seconds);
});
