import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { toProblem } from "../herald-error.ts";
import { createMemoryLimit } from "./address-limits.ts";
import { createReadBody, parseJson } from "./json-body.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

const limit = 200_000;
const share = 300_000;
const memory = createMemoryLimit({ maxBytes: 2 * share, maxPerAddress: share });
const read = createReadBody(limit);
/** Resolves when the body may be read. */
let permit = Promise.resolve();
let outcomes: string[] = [];
let server: HttpServer;
beforeAll(async () => {
  server = await startHttp(
    async (request, response) => {
      const reserve = memory.forRequest(request, response, "address");
      await permit;
      const { status, headers, body } = await read(request, reserve).then(
        (value) => ({ status: 200, headers: {}, body: { errors: [typeof value] } }),
        (error: unknown) => toProblem(error, "test"),
      );
      outcomes.push(body.errors.join());
      response.writeHead(status, headers).end(JSON.stringify(body));
    },
    { host: "127.0.0.1", port: 0 },
  );
});
afterAll(() => server.stop(100));
beforeEach(() => {
  permit = Promise.resolve();
  outcomes = [];
});

const post = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => {
  const response = await fetch(server.address, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
  const { errors } = (await response.json()) as { errors: string[] };
  return { status: response.status, errors, headers: response.headers };
};

/** The start of a request that never ends. */
const half = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${bytes + 1}\r\n\r\n${"a".repeat(bytes)}`;

test("JSON of too many values is refused before anything looks at them", async () => {
  // Text is not structure, even with escapes in it.
  expect(await post(JSON.stringify({ text: '\\",{[:'.repeat(9_000) }))).toMatchObject({ status: 200 });
  expect(await post(`[${"0,".repeat(19_998)}0]`)).toMatchObject({ status: 200 });
  const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`k${index}`, 0])));
  expect(await post(wide)).toMatchObject({ status: 422, errors: ["body: an object may have at most 1000 fields"] });
  for (const many of [`[${"0,".repeat(20_000)}0]`, `[${"[0,0],".repeat(9_000)}0]`])
    expect(await post(many)).toMatchObject({ status: 422, errors: ["body: may have at most 20000 values"] });
});

test("limits the memory of arriving bodies, compressed ones by their decompressed size", async () => {
  const sockets = [1, 2].map(() => connect(server.port, "127.0.0.1"));
  for (const socket of sockets) socket.write(half(140_000));
  await expect.poll(memory.used).toBeGreaterThan(280_000);
  for (const [body, coding] of [
    [JSON.stringify("x".repeat(100_000)), "identity"],
    [new Uint8Array(gzipSync(JSON.stringify("x".repeat(100_000)))), "gzip"],
  ] as const) {
    const refused = await post(body, { "content-encoding": coding });
    expect(refused).toMatchObject({ status: 429, errors: [expect.stringContaining(`may have ${share} bytes`)] });
    expect(refused.headers.get("retry-after")).toBe("1");
  }
  expect(await post('"small"')).toMatchObject({ status: 200 });
  for (const socket of sockets) socket.destroy();
  await expect.poll(memory.used).toBe(0);
});

test("a body that breaks off releases its memory, also before it is read", async () => {
  const gate = Promise.withResolvers<void>();
  for (const wait of [Promise.resolve(), gate.promise]) {
    permit = wait;
    const socket = connect(server.port, "127.0.0.1");
    await once(socket, "connect");
    await new Promise((resolve) => socket.write(half(1_000), resolve));
    await expect.poll(server.connections).toBe(1);
    socket.destroy();
    await expect.poll(server.connections).toBe(0);
    gate.resolve();
    await expect.poll(() => outcomes.length).toBe(1);
    expect(outcomes.splice(0)).toEqual(["body: could not be read as content-length and content-encoding announce it"]);
    expect(memory.used()).toBe(0);
  }
});

test("half an emoji in a text is replaced, wherever the text is", () => {
  const whole = '"\\ud83d\\ude00 \\\\ud83d"';
  const parsed = parseJson(
    `{ "title": "Hi \\ud83d", "list": ["\\uDE00", { "deep": "a\\uD83Db" }, 1, null], "whole": ${whole} }`,
  );
  expect(parsed).toEqual({
    title: "Hi \ufffd",
    list: ["\ufffd", { deep: "a\ufffdb" }, 1, null],
    whole: "😀 \\ud83d",
  });
  expect(parseJson('"\\ud83d"')).toBe("\ufffd");
});

test.each([
  ['{ "\\ud83d": 1 }', "body: the name"],
  ['{ "device": { "metadata": { "a": [{ "x\\ude00": 1 }] } } }', "device.metadata.a.0: the name"],
])("a field whose name has half an emoji is refused: %s", (text, says) => {
  expect(() => parseJson(text)).toThrow(
    expect.objectContaining({ code: "validation-failed", message: expect.stringContaining(says) }),
  );
});

test("the bytes of half an emoji are no UTF-8", async () => {
  const bytes = Uint8Array.from([...Buffer.from('{ "a": "'), 0xed, 0xa0, 0xbd, ...Buffer.from('" }')]);
  expect(await post(bytes)).toMatchObject({ status: 400, errors: ["body: is not UTF-8"] });
});
