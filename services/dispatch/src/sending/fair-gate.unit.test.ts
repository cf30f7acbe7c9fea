import fc from "fast-check";
import { expect, test } from "vitest";
import { createFairGate } from "./fair-gate.ts";

/** Lets everything that is ready to run do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("a key with its share waits, and others pass it", async () => {
  const gate = createFairGate({ total: 3, perKey: 2 });
  const entered: string[] = [];
  const leave: Record<string, () => void> = {};
  const enter = (key: string, name: string) =>
    void gate.enter(key).then((out) => {
      entered.push(name);
      leave[name] = out;
    });
  for (const name of ["a1", "a2", "a3", "a4"]) enter("a", name);
  enter("b", "b1");
  enter("b", "b2");
  await settle();
  expect(entered).toEqual(["a1", "a2", "b1"]);
  leave.a1?.();
  leave.a1?.();
  await settle();
  expect(entered).toEqual(["a1", "a2", "b1", "a3"]);
  leave.a2?.();
  await settle();
  expect(entered, "the place goes to the key whose turn it is").toEqual(["a1", "a2", "b1", "a3", "b2"]);
});

test("nobody gets in any more when it is closed, and who is inside may leave", async () => {
  const gate = createFairGate({ total: 1, perKey: 1 });
  const leave = await gate.enter("a");
  const waiting = gate.enter("b");
  gate.close();
  await expect(waiting).rejects.toMatchObject({ code: "service-away" });
  await expect(gate.enter("a")).rejects.toMatchObject({ code: "service-away" });
  leave();
});

test("never more than allowed, and everybody gets in", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 60 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 6 }),
      async (keys, total, perKey) => {
        const gate = createFairGate({ total, perKey });
        const now = new Map<string, number>();
        let all = 0;
        let done = 0;
        await Promise.all(
          keys.map(async (key) => {
            const leave = await gate.enter(key);
            now.set(key, (now.get(key) ?? 0) + 1);
            all++;
            expect(all).toBeLessThanOrEqual(total);
            expect(now.get(key)).toBeLessThanOrEqual(perKey);
            await settle();
            now.set(key, (now.get(key) ?? 0) - 1);
            all--;
            leave();
            done++;
          }),
        );
        expect(done).toBe(keys.length);
      },
    ),
    { numRuns: 50 },
  );
});
