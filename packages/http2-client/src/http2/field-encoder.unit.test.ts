import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFieldDecoder } from "./field-decoder.ts";
import { createFieldEncoder } from "./field-encoder.ts";

const authorization = `bearer ${"j".repeat(200)}`;

function createPair() {
  const encoder = createFieldEncoder("api.push.apple.com");
  const decoder = createFieldDecoder(1_000_000);
  return {
    encoder,
    /** Encodes a request and decodes it again as the peer would. */
    pass(path: string, headers: Record<string, string>, method?: "GET" | "DELETE") {
      const request = { path, headers, body: "", method };
      const bytes = Buffer.alloc(encoder.most(request));
      const block = bytes.subarray(0, encoder.encode(bytes, 0, request));
      const { names, values, count } = decoder.decode(block, 0, block.length);
      return { block, fields: names.slice(0, count).map((name, at) => [name, values[at]]) };
    },
  };
}

const whole = (path: string, headers: Record<string, string>) => [
  [":method", "POST"],
  [":scheme", "https"],
  [":authority", "api.push.apple.com"],
  [":path", path],
  ...Object.entries(headers),
];

describe("a request's fields", () => {
  test("name another method than POST", () => {
    const { pass } = createPair();
    for (const method of ["GET", "DELETE"] as const) {
      const [, ...others] = whole("/", {});
      expect(pass("/", {}, method).fields).toEqual([[":method", method], ...others]);
    }
    expect(pass("/", {}).fields).toEqual(whole("/", {}));
  });

  test("shrink to an index each once they repeat, but for what differs and what is secret", () => {
    const { pass } = createPair();
    const headers = { "apns-topic": "com.example.app", "apns-expiration": "1900000000", ttl: "60", authorization };
    const sizes = [1, 2, 3].map((at) => pass(`/${at}`, { ...headers, "apns-id": `id-${at}` }).block.length);
    const indexed = 3 + 3; // method, scheme, authority; topic, expiration, ttl
    const path = 1 + 1 + "/3".length;
    const id = 2 + 1 + "id-3".length;
    const credential = 2 + 2 + authorization.length;
    expect(sizes[2]).toBe(indexed + path + id + credential);
    expect(sizes[0]).toBeGreaterThan(sizes[2] ?? 0);
  });

  test("never put the credential or the device's token into a table", () => {
    const { pass } = createPair();
    for (let round = 0; round < 3; round++) {
      const { block } = pass("/3/device/00ff", { authorization });
      const text = block.toString("latin1");
      // Pattern 0001: a literal that intermediaries must not index either.
      expect(text).toContain("\x14\x0e/3/device/00ff");
      expect(text).toContain(`\x1f\x08\x7f${String.fromCharCode(authorization.length - 127)}bearer`);
    }
  });

  test("do not let values that never repeat push out those that do", () => {
    const { pass } = createPair();
    const sizes = new Set<number>();
    for (let at = 0; at < 1_000; at++) {
      const id = String(at).padStart(36, "0");
      const { block } = pass("/", { "apns-topic": "com.example.app", "apns-id": id, "apns-collapse-id": "same" });
      if (at > 2) sizes.add(block.length);
    }
    expect(sizes.size).toBe(1);
  });
});

test("the peer decodes the same fields, whatever repeats and however its table's size changes", () => {
  const value = fc.oneof(
    fc.constantFrom("a", "b", "", "v".repeat(500), "w".repeat(1_500), "x".repeat(9_000)),
    fc.string({ unit: fc.constantFrom(..."abc019-_.~ "), maxLength: 40 }),
  );
  const name = fc.constantFrom("apns-id", "apns-topic", "authorization", "ttl", "content-length", "urgency", "x-y");
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ path: value, headers: fc.dictionary(name, value, { noNullPrototype: true }) }),
    },
    { weight: 1, arbitrary: fc.constantFrom(0, 40, 100, 1_000, 4_096, 65_536) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { encoder, pass } = createPair();
      for (const next of steps) {
        if (typeof next === "number") encoder.limitTable(next);
        else expect(pass(`/${next.path}`, next.headers).fields).toEqual(whole(`/${next.path}`, next.headers));
      }
    }),
    { numRuns: 150 },
  );
});

test("names beyond the encoder's memory are still decoded correctly", () => {
  const { pass } = createPair();
  for (let round = 0; round < 3; round++) {
    const headers = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`name-${at}`, `value-${at}`]));
    expect(pass("/", headers).fields).toEqual(whole("/", headers));
  }
});
