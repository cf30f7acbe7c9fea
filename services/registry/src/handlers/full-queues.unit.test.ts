import { HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createFullQueues } from "./full-queues.ts";

const refused = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof HeraldError) return error.code;
  }
  return "passed";
};

test("while a page waits for a full queue, it alone tries; afterwards everyone may", () => {
  const full = createFullQueues();
  expect(refused(() => full.pass("q", "a"))).toBe("passed");
  full.refused("q", "a");
  full.refused("q", "b");
  expect(full.waitsFor("q", "a")).toBe(true);
  expect(full.waitsFor("q", "b")).toBe(false);
  expect(refused(() => full.pass("q", "a"))).toBe("passed");
  expect(refused(() => full.pass("q", "b"))).toBe("queue-full");
  expect(refused(() => full.pass("other", "b"))).toBe("passed");
  full.leave("q", "b");
  expect(refused(() => full.pass("q", "b"))).toBe("queue-full");
  full.leave("q", "a");
  expect(refused(() => full.pass("q", "b"))).toBe("passed");
});
