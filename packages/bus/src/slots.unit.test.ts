import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

test("lets in as many as there are, then in the order of asking", async () => {
  const slots = createSlots(2);
  const entered: string[] = [];
  const enter = (name: string) => slots.acquire().then(() => entered.push(name));
  await Promise.all([enter("a"), enter("b")]);
  const waiting = [enter("c"), enter("d")];
  expect(slots.tryAcquire()).toBe(false);
  expect(slots.waiting()).toBe(2);
  slots.release();
  // The slot went to who waited: nobody overtakes.
  expect(slots.tryAcquire()).toBe(false);
  slots.release();
  await Promise.all(waiting);
  expect(entered).toEqual(["a", "b", "c", "d"]);
  slots.release();
  expect(slots.tryAcquire()).toBe(true);
  expect(slots.tryAcquire()).toBe(false);
});
