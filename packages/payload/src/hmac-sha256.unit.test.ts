import { createHmac, hkdfSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hkdfSha256, hmacSha256 } from "./hmac-sha256.ts";

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));

describe("HMAC-SHA-256", () => {
  test("is what the standard library computes", () => {
    fc.assert(
      fc.property(
        bytes(64),
        bytes(512),
        fc.constantFrom("binary" as const, "base64url" as const),
        (key, message, encoding) => {
          expect(hmacSha256(key)(message.toString("latin1"), encoding)).toBe(
            createHmac("sha256", key).update(message).digest(encoding),
          );
        },
      ),
    );
  });

  test("computes many under one key, each as if it were the first", () => {
    const mac = hmacSha256(Buffer.from("key"));
    for (const message of ["long enough to leave something behind", "", "short"])
      expect(mac(message, "base64url")).toBe(createHmac("sha256", "key").update(message).digest("base64url"));
  });

  test("refuses keys and messages beyond its limits", () => {
    expect(() => hmacSha256(Buffer.alloc(65))).toThrow("key: 65 bytes, at most 64");
    expect(() => hmacSha256(Buffer.alloc(32))("x".repeat(513), "binary")).toThrow("message: 513 bytes, at most 512");
  });
});

describe("HKDF-SHA-256", () => {
  test("is what RFC 5869 says (appendix A.3, the first 32 bytes)", () => {
    const expand = hkdfSha256(Buffer.alloc(0), Buffer.alloc(22, 0x0b));
    expect(expand("", 32).toString("hex")).toBe("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
  });

  test("is what the standard library computes", () => {
    const length = fc.integer({ min: 1, max: 32 });
    fc.assert(
      fc.property(bytes(64), bytes(512), bytes(511), length, (salt, secret, info, size) => {
        const expected = Buffer.from(hkdfSync("sha256", secret, salt, info, size));
        expect(hkdfSha256(salt, secret)(info.toString("latin1"), size)).toEqual(expected);
      }),
    );
  });

  test("refuses to expand beyond one block", () => {
    expect(() => hkdfSha256(Buffer.alloc(0), Buffer.alloc(32))("", 33)).toThrow("length: 33 bytes, at most 32");
  });
});
