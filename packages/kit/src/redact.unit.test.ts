import { expect, test } from "vitest";
import { scrub } from "./redact.ts";

test.each([
  ["token hpt_AAAAAAAAAAAA in words", "token hpt_[masked] in words"],
  ["secret his_AAAAAAAAAAAA in words", "secret his_[masked] in words"],
  ["nats://user:pass@host:4222", "nats://[masked]@host:4222"],
  ["GET https://a.example/b?c=d#e", "GET https://a.example/b?[masked]#e"],
  ["Bearer abcdefghijkl", "Bearer [masked]"],
  ['{"err":"dup key: { a: \\"x\\" }"}', '{"err":"dup key: [masked]"}'],
  ["open v1.k1.dev_0.1900000000.AAAAAAAAAAAAAAAA", "open [open token masked]"],
  ["open v2.k1.dev_0.i.1900000000.AAAAAAAAAAAAAAAA", "open [open token masked]"],
  ["https://a.example/b", "https://a.example/b"],
  ["/api/v1/devices", "/api/v1/devices"],
  ["the version v1.2.3 of a basic thing", "the version v1.2.3 of a basic thing"],
])("%j becomes %j", (text, expected) => {
  expect(scrub(text)).toBe(expected);
});

test("a masked line is still JSON", () => {
  const line = JSON.stringify({
    a: "Bearer abcdefghijkl",
    b: 'http://x/?q="quoted"',
    c: "-----BEGIN X-----\n\n-----END X-----",
  });
  expect(() => JSON.parse(scrub(line))).not.toThrow();
});
