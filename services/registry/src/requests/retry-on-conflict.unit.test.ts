import { expect, test } from "vitest";
import { again, retryOnConflict } from "./retry-on-conflict.ts";

test("attempts until nobody else was faster", async () => {
  let rounds = 0;
  expect(await retryOnConflict(async () => (++rounds < 30 ? again : "done"))).toBe("done");
  expect(rounds).toBe(30);
});

test("ends with an error that is worth a repeat when somebody always is", async () => {
  await expect(retryOnConflict(async () => again)).rejects.toMatchObject({
    code: "service-unavailable",
    retryAfterSeconds: 1,
  });
});

test("a failure is no lost round", async () => {
  let rounds = 0;
  const failing = retryOnConflict(async () => {
    rounds++;
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(rounds).toBe(1);
});
