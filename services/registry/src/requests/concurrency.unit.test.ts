import { expect, test } from "vitest";
import { conflict, createKeyedMutex, retryOnConflict } from "./concurrency.ts";

/** Work that ends when the test ends it. */
const gate = () => Promise.withResolvers<void>();

test("work of the same key runs one after another, in order", async () => {
  const keyedMutex = createKeyedMutex();
  const [first, second] = [gate(), gate()];
  const log: string[] = [];
  const run = (name: string, until: Promise<void>) =>
    keyedMutex("key", async () => {
      log.push(`${name} begins`);
      await until;
      log.push(`${name} ends`);
      return name;
    });
  const both = [run("first", first.promise), run("second", second.promise)];
  second.resolve();
  await Promise.resolve();
  expect(log).toEqual(["first begins"]);
  first.resolve();
  expect(await Promise.all(both)).toEqual(["first", "second"]);
  expect(log).toEqual(["first begins", "first ends", "second begins", "second ends"]);
});

test("other keys do not wait", async () => {
  const keyedMutex = createKeyedMutex();
  const never = gate();
  void keyedMutex("a", () => never.promise);
  expect(await keyedMutex("b", async () => "done")).toBe("done");
});

test("work of several keys waits for its turn on each key, and blocks all of them", async () => {
  const keyedMutex = createKeyedMutex();
  const [a, b, both] = [gate(), gate(), gate()];
  const log: string[] = [];
  const run = (name: string, keys: string | string[], until: Promise<void> = Promise.resolve()) =>
    keyedMutex(keys, async () => {
      log.push(name);
      await until;
    });
  const all = [run("a", "a", a.promise), run("b", "b", b.promise), run("both", ["a", "b", "a"], both.promise)];
  all.push(run("a again", "a"), run("b again", ["b", "c"]));
  a.resolve();
  await all[0];
  expect(log).toEqual(["a", "b"]);
  b.resolve();
  await all[1];
  both.resolve();
  await Promise.all(all);
  expect(log).toEqual(["a", "b", "both", "a again", "b again"]);
});

test("a failure reaches only its caller", async () => {
  const keyedMutex = createKeyedMutex();
  const failing = keyedMutex("key", async () => {
    throw new Error("mine");
  });
  const next = keyedMutex("key", async () => "fine");
  await expect(failing).rejects.toThrow("mine");
  expect(await next).toBe("fine");
});

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
