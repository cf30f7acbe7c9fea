import { expect, test } from "vitest";
import { conflict, retryOnConflict } from "./retry-on-conflict.ts";

test("retries until there is no conflict", async () => {
  let rounds = 0;
  expect(await retryOnConflict(async () => (++rounds < 30 ? conflict : "done"))).toBe("done");
  expect(rounds).toBe(30);
});

test("ends with a retryable error when every attempt conflicts", async () => {
  await expect(retryOnConflict(async () => conflict)).rejects.toMatchObject({
    code: "service-unavailable",
    retryAfterSeconds: 1,
  });
});

test("a failure is not retried", async () => {
  let rounds = 0;
  const failing = retryOnConflict(async () => {
    rounds++;
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(rounds).toBe(1);
});
