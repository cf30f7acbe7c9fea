import { HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createFullQueues } from "./expand.ts";

const refused = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof HeraldError) return error.code;
  }
  return "passed";
};

test("while a page waits for a full queue, only that page retries; afterwards every page may", () => {
  const full = createFullQueues();
  expect(refused(() => full.check("q", "a"))).toBe("passed");
  full.markFull("q", "a");
  full.markFull("q", "b");
  expect(full.isWaiting("q", "a")).toBe(true);
  expect(full.isWaiting("q", "b")).toBe(false);
  expect(refused(() => full.check("q", "a"))).toBe("passed");
  expect(refused(() => full.check("q", "b"))).toBe("queue-full");
  expect(refused(() => full.check("other", "b"))).toBe("passed");
  full.release("q", "b");
  expect(refused(() => full.check("q", "b"))).toBe("queue-full");
  full.release("q", "a");
  expect(refused(() => full.check("q", "b"))).toBe("passed");
});
