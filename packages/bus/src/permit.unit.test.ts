import { expect, test } from "vitest";
import { createSemaphore } from "./permit.ts";

test("grants as many slots as there are, then in the order of requests", async () => {
  const semaphore = createSemaphore(2);
  const entered: string[] = [];
  const enter = (name: string) => semaphore.acquire().then(() => entered.push(name));
  await Promise.all([enter("a"), enter("b")]);
  const waiting = [enter("c"), enter("d")];
  expect(semaphore.tryAcquire()).toBe(false);
  semaphore.release();
  // The slot went to the first waiter, so the order is kept.
  expect(semaphore.tryAcquire()).toBe(false);
  semaphore.release();
  await Promise.all(waiting);
  expect(entered).toEqual(["a", "b", "c", "d"]);
  semaphore.release();
  expect(semaphore.tryAcquire()).toBe(true);
  expect(semaphore.tryAcquire()).toBe(false);
});
