import { expect, test } from "vitest";
import { HeraldError } from "./herald-error.ts";
import { growingPause, retryWhileUnavailable } from "./retry-while-unavailable.ts";

const away = () => new HeraldError("database-unavailable", "the database is unavailable");
const never = growingPause(new AbortController().signal);

/** Fails with each of the errors, then resolves to 7. */
const failing = (...failures: Error[]) => {
  const calls = { count: 0 };
  const work = async () => {
    const failure = failures[calls.count++];
    if (failure) throw failure;
    return 7;
  };
  return { work, calls };
};

test("an unavailable dependency is retried", async () => {
  const { work, calls } = failing(away(), away());
  expect(await retryWhileUnavailable(work, never)).toBe(7);
  expect(calls.count).toBe(3);
});

test("other errors are not retried", async () => {
  const { work, calls } = failing(new TypeError("wrong"));
  await expect(retryWhileUnavailable(work, never)).rejects.toThrow("wrong");
  expect(calls.count).toBe(1);
});

test("for outcomes other errors are retried a few times, too", async () => {
  const wrong = () => new TypeError("wrong");
  const { work } = failing(wrong(), away(), wrong());
  expect(await retryWhileUnavailable(work, never, { otherAttempts: 3 })).toBe(7);
  const { work: worse, calls } = failing(wrong(), wrong(), wrong());
  await expect(retryWhileUnavailable(worse, never, { otherAttempts: 3 })).rejects.toThrow("wrong");
  expect(calls.count).toBe(3);
});

test("when the service stops, the error is thrown", async () => {
  const ending = new AbortController();
  const { work } = failing(...Array.from({ length: 100 }, away));
  const trying = retryWhileUnavailable(work, growingPause(ending.signal));
  ending.abort();
  await expect(trying).rejects.toMatchObject({ code: "database-unavailable" });
});

test("the pause gets the error and how often it was called, and decides whether a retry follows", async () => {
  const paused: unknown[] = [];
  const { work, calls } = failing(away(), away(), away());
  const pause = async (error: unknown, tries: number) => {
    paused.push([(error as HeraldError).code, tries]);
    return tries < 1;
  };
  await expect(retryWhileUnavailable(work, pause)).rejects.toMatchObject({ code: "database-unavailable" });
  expect(paused).toEqual([
    ["database-unavailable", 0],
    ["database-unavailable", 1],
  ]);
  expect(calls.count).toBe(2);
});
