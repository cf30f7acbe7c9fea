import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createByteCache, memoryBytesOf } from "./byte-cache.ts";

const cache = (maxBytes: number) =>
  createByteCache<string, { text: string }>({ name: "test", maxBytes, sizeOf: ({ text }) => text.length });

describe("a cache in bytes", () => {
  test("evicts the least recently used values above its limit", () => {
    const cached = cache(10_000);
    for (let at = 0; at < 100; at++) {
      cached.set(`${at}`, { text: "x".repeat(1_000) });
      expect(cached.calculatedSize).toBeLessThanOrEqual(10_000);
      if (at > 0) expect(cached.get("0")).toBeDefined();
    }
    expect(cached.get("1")).toBeUndefined();
    expect(cached.get("99")).toBeDefined();
  });

  test("does not count a peek as use", () => {
    const cached = cache(3_000);
    for (const key of ["a", "b"]) cached.set(key, { text: "x".repeat(1_000) });
    expect(cached.peek("a")).toBeDefined();
    cached.set("c", { text: "x".repeat(1_000) });
    expect(cached.peek("a")).toBeUndefined();
  });

  test("stores no value that is larger than the cache, and removes the key's earlier value", () => {
    const cached = cache(2_000);
    cached.set("small", { text: "x" });
    cached.set("big", { text: "x" });
    cached.set("big", { text: "x".repeat(2_000) });
    expect(cached.get("big")).toBeUndefined();
    expect(cached.get("small")).toBeDefined();
  });
});

test("who waits for a value gets it, also if others take its place meanwhile", async () => {
  const { promise, resolve } = Promise.withResolvers<{ text: string }>();
  const fetchMethod = (key: string) => (key === "slow" ? promise : Promise.resolve({ text: "x".repeat(1_000) }));
  const options = { name: "test", maxBytes: 3_000, sizeOf: ({ text }: { text: string }) => text.length, fetchMethod };
  const cached = createByteCache<string, { text: string }>(options);
  const slow = cached.fetch("slow");
  for (const key of ["a", "b", "c", "d", "e"]) await cached.fetch(key);
  resolve({ text: "slow" });
  expect(await slow).toEqual({ text: "slow" });
});

describe("the memory of a value", () => {
  test("is at least the size of its JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(memoryBytesOf(value)).toBeGreaterThanOrEqual(JSON.stringify(value).length);
      }),
    );
  });

  test("is several times its JSON if it has many small fields", () => {
    const fields = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, {}]));
    expect(memoryBytesOf(fields)).toBeGreaterThan(5 * JSON.stringify(fields).length);
  });

  test("is computed without recursion for a deeply nested value", () => {
    let deep: unknown = "x";
    for (let at = 0; at < 100_000; at++) deep = [deep];
    expect(memoryBytesOf(deep)).toBeGreaterThan(100_000);
  });
});
