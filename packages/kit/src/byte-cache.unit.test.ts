import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createByteCache } from "./byte-cache.ts";
import { memoryBytesOf } from "./memory-bytes.ts";

const cache = (maxBytes: number) =>
  createByteCache<string, { text: string }>({ name: "test", maxBytes, sizeOf: ({ text }) => text.length });

describe("a cache in bytes", () => {
  test("never holds more than it may, and loses what was used longest ago", () => {
    const held = cache(10_000);
    for (let at = 0; at < 100; at++) {
      held.set(`${at}`, { text: "x".repeat(1_000) });
      expect(held.bytes()).toBeLessThanOrEqual(10_000);
      if (at > 0) expect(held.get("0")).toBeDefined();
    }
    expect(held.get("1")).toBeUndefined();
    expect(held.get("99")).toBeDefined();
  });

  test("does not count a look as use where it is only a look", () => {
    const held = cache(3_000);
    for (const key of ["a", "b"]) held.set(key, { text: "x".repeat(1_000) });
    expect(held.peek("a")).toBeDefined();
    held.set("c", { text: "x".repeat(1_000) });
    expect(held.peek("a")).toBeUndefined();
  });

  test("does not keep what is larger than all of it, nor an older value of that key", () => {
    const held = cache(2_000);
    held.set("small", { text: "x" });
    held.set("big", { text: "x" });
    held.set("big", { text: "x".repeat(2_000) });
    expect(held.get("big")).toBeUndefined();
    expect(held.get("small")).toBeDefined();
  });
});

describe("what a value holds", () => {
  test("is at least its JSON, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(memoryBytesOf(value)).toBeGreaterThanOrEqual(JSON.stringify(value).length);
      }),
    );
  });

  test("is several times its JSON where that is many small fields", () => {
    const fields = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, {}]));
    expect(memoryBytesOf(fields)).toBeGreaterThan(5 * JSON.stringify(fields).length);
  });

  test("is found in a value that is nested deeper than the stack", () => {
    let deep: unknown = "x";
    for (let at = 0; at < 100_000; at++) deep = [deep];
    expect(memoryBytesOf(deep)).toBeGreaterThan(100_000);
  });
});
