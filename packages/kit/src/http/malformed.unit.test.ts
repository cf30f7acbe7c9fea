import { afterAll, beforeAll, expect, test } from "vitest";
import { problemIn, startThings } from "../../test/start-things.ts";

let t: Awaited<ReturnType<typeof startThings>>;
beforeAll(async () => {
  t = await startThings();
});
afterAll(() => t.stop());

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

test.each<[string, string | Buffer, RegExp]>([
  ["not HTTP at all", "hello\r\n\r\n", /^HTTP\/1\.1 400/],
  ["random bytes", Buffer.from(Array.from({ length: 256 }, (_, index) => index)), /^HTTP\/1\.1 400/],
  ["TLS", Buffer.from("16030100c8010000c40303", "hex"), /^HTTP\/1\.1 400/],
  ["an unknown method", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", /^HTTP\/1\.1 400/],
  ["HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", /^HTTP\/1\.1 (?:400|505)/],
  ["a space in a header's name", "GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", /^HTTP\/1\.1 400/],
  ["a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", /^HTTP\/1\.1 400/],
  ["a folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", /^HTTP\/1\.1 4/],
  ["NUL in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", /^HTTP\/1\.1 400/],
  ["a bare LF before the headers end", "GET / HTTP/1.1\nHost: a\n\n", /^HTTP\/1\.1 400/],
  ["huge headers", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431/],
  ["a huge path", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, /^HTTP\/1\.1 431/],
  [
    "two lengths that differ",
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`,
    /^HTTP\/1\.1 400/,
  ],
  ["a length that is no number", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3x\r\n\r\nabc", /^HTTP\/1\.1 400/],
  ["a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\nabc", /^HTTP\/1\.1 400/],
  [
    "length and chunks together",
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "an obscured transfer coding",
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 4\d\d/,
  ],
  [
    "two transfer codings",
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 400/,
  ],
  ["no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", /^HTTP\/1\.1 400/],
  ["two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", /^HTTP\/1\.1 400/],
])("malformed: %s", async (_name, bytes, expected) => {
  const answer = await t.raw(bytes);
  expect(answer).toMatch(expected);
  expect(problemIn(answer).errors).toHaveLength(1);
  expect(answer.match(/^HTTP\/1\.1 \d/gm)).toHaveLength(1);
});

test("a chunk whose size is no number is refused, and the connection ends", async () => {
  const answer = await t.raw(
    "POST /api/v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
  );
  expect(answer).toMatch(/^HTTP\/1\.1 400/);
});

test("CONNECT opens no tunnel", async () => {
  expect(await t.raw("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")).not.toMatch(/ 200 /);
});

test("the server still answers after all that", async () => {
  expect((await t.call("GET", "/api/v1/things/1")).status).toBe(200);
});
