import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { createStreamSlots } from "./stream-slots.ts";

const [one, other, third] = [newProjectId(new Date()), newProjectId(new Date()), newProjectId(new Date())] as const;

test("a project has so many places, and all together have so many", () => {
  const { take } = createStreamSlots({ perProject: 2, inAll: 3 });
  const first = take(one);
  take(one);
  expect(() => take(one)).toThrow("streams: at most 2 of a project are accepted at a time here");
  take(other);
  expect(() => take(third)).toThrow("streams: this gateway has as many as it takes; close one, or try again later");
  first();
  take(third);
  expect(() => take(one)).toThrow(expect.objectContaining({ code: "rate-limited", retryAfterSeconds: 5 }));
});

test("a place that is given back twice is one place", () => {
  const { take } = createStreamSlots({ perProject: 1, inAll: 1 });
  const first = take(one);
  first();
  first();
  take(one);
  expect(() => take(other)).toThrow("as many as it takes");
});
