import { AsyncLocalStorage } from "node:async_hooks";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createFairGate, createShares } from "./fair-gate.ts";

/** Lets all work run that is ready. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("a key with its share waits, and others pass it", async () => {
  const gate = createFairGate({ total: 3, perKey: 2 });
  const entered: string[] = [];
  const leave: Record<string, () => void> = {};
  const enter = (key: string, name: string) =>
    void gate.enter(key, 1).then((out) => {
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

test("a closed gate admits no more, and those inside may leave", async () => {
  const gate = createFairGate({ total: 1, perKey: 1 });
  const leave = await gate.enter("a", 1);
  const waiting = gate.enter("b", 1);
  gate.close();
  await expect(waiting).rejects.toMatchObject({ code: "service-unavailable" });
  await expect(gate.enter("a", 1)).rejects.toMatchObject({ code: "service-unavailable" });
  leave();
});

test("a waiter for many places gets them, though those behind want few", async () => {
  const gate = createFairGate({ total: 4, perKey: 4 });
  const entered: string[] = [];
  const enter = (key: string, places: number) =>
    gate.enter(key, places).then((leave) => {
      entered.push(key);
      return leave;
    });
  const leave = await enter("a", 1);
  const large = enter("b", 4);
  const small = enter("c", 1);
  await settle();
  expect(entered).toEqual(["a"]);
  leave();
  (await large)();
  (await small)();
  expect(entered).toEqual(["a", "b", "c"]);
});

test("admits never more than allowed, and everyone in the end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.integer({ min: 1, max: 7 })), { maxLength: 60 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 6 }),
      async (wanted, total, perKey) => {
        const gate = createFairGate({ total, perKey });
        const now = new Map<string, number>();
        let all = 0;
        let done = 0;
        await Promise.all(
          wanted.map(async ([key, places]) => {
            const leave = await gate.enter(key, places);
            const got = Math.min(places, perKey, total);
            now.set(key, (now.get(key) ?? 0) + got);
            all += got;
            expect(all).toBeLessThanOrEqual(total);
            expect(now.get(key)).toBeLessThanOrEqual(perKey);
            await settle();
            now.set(key, (now.get(key) ?? 0) - got);
            all -= got;
            leave();
            done++;
          }),
        );
        expect(done).toBe(wanted.length);
      },
    ),
    { numRuns: 50 },
  );
});

test("without a fixed share a key alone gets most places and never all, and each that comes finds some free", () => {
  const shares = createShares(128);
  const fill = (key: string) => {
    let count = 0;
    while (shares.has(key, 1)) {
      shares.take(key, 1);
      count++;
    }
    return count;
  };
  expect([shares.room("a"), fill("a"), shares.room("a")]).toEqual([96, 96, 0]);
  expect([shares.room("b"), fill("b"), fill("c")]).toEqual([24, 24, 6]);
  shares.give("a", 96);
  expect([shares.room("b"), fill("b")]).toEqual([67, 67]);
});

test("a key without places may take the last free place", () => {
  const shares = createShares(1);
  expect([shares.has("a", 1), shares.room("a")]).toEqual([true, 1]);
  shares.take("a", 1);
  expect([shares.room("b"), shares.free()]).toEqual([0, 0]);
});

test("a waiter that is gone loses its turn and makes room in a full line", async () => {
  const gate = createFairGate({ total: 1, line: { perKey: 2, total: 3 } });
  const leave = await gate.enter("a", 1);
  let gone = false;
  const late = [1, 2].map(() => gate.enter("a", 1, { isGone: () => gone }).catch((error: unknown) => error));
  await expect(gate.enter("a", 1)).rejects.toMatchObject({ code: "rate-limited", retryAfterSeconds: 1 });
  const other = gate.enter("b", 1);
  await expect(gate.enter("c", 1)).rejects.toMatchObject({ code: "service-unavailable", retryAfterSeconds: 1 });
  gone = true;
  const next = gate.enter("a", 1);
  for (const one of await Promise.all(late)) expect(one).toMatchObject({ code: "service-unavailable" });
  leave();
  (await other)();
  (await next)();
});

test("waiters count by their weight, and one key's leave room for others'", async () => {
  const gate = createFairGate({ total: 1, line: { total: 100 } });
  const leave = await gate.enter("a", 1);
  const waiting = [
    gate.enter("a", 1, { weight: 40 }),
    gate.enter("a", 1, { weight: 35 }),
    gate.enter("b", 1, { weight: 18 }),
    gate.enter("c", 1, { weight: 5 }),
  ];
  for (const weight of [1, 100])
    await expect(gate.enter("a", 1, { weight })).rejects.toMatchObject({ code: "rate-limited" });
  expect([gate.waiting("a"), gate.waiting("b"), gate.waiting("d")]).toEqual([2, 1, 0]);
  leave();
  await Promise.all(waiting.map(async (one) => (await one)()));
  expect(gate.waiting("a")).toBe(0);
  (await gate.enter("a", 1, { weight: 75 }))();
});

const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0);

/** Begins pieces of work, and keeps how many began at a time. */
const beginEach = (gate: ReturnType<typeof createFairGate>, key: string, count: number, weight?: number) => {
  const begun: number[] = [];
  let leave: (places: number) => void = () => {};
  const all = gate.enterEach(
    key,
    count,
    (places, back) => {
      begun.push(places);
      leave = back;
    },
    weight,
  );
  return { begun, all, leave: (places: number) => leave(places) };
};

test("pieces begin as the key's share has places, and what waits keeps its turn", async () => {
  const gate = createFairGate({ total: 16 });
  const first = beginEach(gate, "a", 5);
  expect(first.begun, "no more than there are").toEqual([5]);
  await first.all;
  const second = beginEach(gate, "a", 20, 20);
  expect(second.begun, "three quarters are a key's that is alone").toEqual([7]);
  const behind = beginEach(gate, "a", 1, 1);
  const other = beginEach(gate, "b", 100, 100);
  expect(other.begun, "three quarters of the rest").toEqual([3]);
  expect([gate.waiting("a"), gate.waiting("b")]).toEqual([14, 97]);
  for (let n = 0; n < 5; n++) first.leave(1);
  await settle();
  expect(second.begun.length, "places that are given back in one turn begin together").toBe(2);
  expect(behind.begun).toEqual([]);
  for (let ended = 0; second.begun.length > 0 && ended < 20; ) {
    const begun = sum(second.begun);
    second.leave(begun - ended);
    ended = begun;
    await settle();
  }
  await Promise.all([second.all, behind.all]);
  expect([sum(second.begun), behind.begun]).toEqual([20, [1]]);
});

test("pieces wait behind a full line, and their weight leaves it as they begin", async () => {
  const gate = createFairGate({ total: 1, line: { perKey: 4, total: 4 } });
  const leave = await gate.enter("a", 1);
  const pieces = beginEach(gate, "a", 4, 4);
  await expect(gate.enter("a", 1)).rejects.toMatchObject({ code: "rate-limited" });
  const more = beginEach(gate, "a", 1, 1);
  leave();
  expect(pieces.begun).toEqual([1]);
  expect(gate.isFull("a", 1)).toBe(true);
  pieces.leave(1);
  await settle();
  expect(pieces.begun).toEqual([1, 1]);
  expect(gate.isFull("a", 1)).toBe(false);
  expect(more.begun).toEqual([]);
});

test("places that are given back together begin as many waiters of a key, each in its own context", async () => {
  const gate = createFairGate({ total: 400 });
  const context = new AsyncLocalStorage<string>();
  const first = context.run("first", () => beginEach(gate, "a", 100));
  const wide = beginEach(gate, "b", 400);
  const contexts: (string | undefined)[] = [];
  for (let n = 0; n < 50; n++)
    context.run(`waiter ${n}`, () => void gate.enterEach("a", 1, () => contexts.push(context.getStore())));
  const before = contexts.length;
  first.leave(100);
  wide.leave(wide.begun[0] ?? 0);
  await settle();
  expect(before).toBeLessThan(50);
  expect(contexts).toEqual(Array.from({ length: 50 }, (_, n) => `waiter ${n}`));
});

test("a closed gate begins no further piece, and says so", async () => {
  const gate = createFairGate({ total: 2, perKey: 2 });
  const pieces = beginEach(gate, "a", 3);
  gate.close();
  await expect(pieces.all).rejects.toMatchObject({ code: "service-unavailable" });
  pieces.leave(2);
  await settle();
  expect(pieces.begun).toEqual([2]);
  await beginEach(gate, "a", 0).all;
});
