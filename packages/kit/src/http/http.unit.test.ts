import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { limit, problemIn, startThings } from "../../test/start-things.ts";

let t: Awaited<ReturnType<typeof startThings>>;
beforeAll(async () => {
  t = await startThings();
});
afterAll(() => t.stop());
beforeEach(() => {
  t.lines.length = 0;
});

test("answers, under the request id that came or a new one", async () => {
  const given = await t.call("GET", "/api/v1/things/1", { headers: { "x-request-id": "abc-1" } });
  expect(given.headers.get("x-request-id")).toBe("abc-1");
  expect(given.body).toEqual({ id: "1", requestId: "abc-1" });
  const own = given.headers.get("x-own-id");
  expect(own).toMatch(/^[0-9a-f-]{36}$/);
  expect(JSON.parse(t.lines.at(-1) ?? "{}")).toMatchObject({ requestId: "abc-1", ownRequestId: own });
  const made = await t.call("GET", "/api/v1/things/1");
  expect(made.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(made.body.requestId).toBe(made.headers.get("x-request-id"));
  expect(made.headers.get("x-own-id")).toBe(made.headers.get("x-request-id"));
});

test.each(["a b", "a;b", "x".repeat(129), "é"])("the request id %j is not taken over", async (id) => {
  const answer = await t.raw(
    `GET /api/v1/things/1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200/);
  expect(answer).toMatch(/x-request-id: [0-9a-f-]{36}\r\n/i);
});

test("the request id is there after the body was read, too", async () => {
  const { body } = await t.post(JSON.stringify({ thing: { name: "a" } }), {
    "content-type": "application/json",
    "x-request-id": "abc-2",
  });
  expect(body).toEqual({ data: { name: "a" }, requestId: "abc-2" });
});

test.each([
  "application/json",
  "application/json; charset=utf-8",
  'application/json;charset="UTF-8"',
  "application/merge-patch+json",
  "APPLICATION/JSON",
])("takes a body as %s", async (type) => {
  expect((await t.post('{"thing":{"name":"a"}}', { "content-type": type })).status).toBe(201);
});

test.each([
  "text/plain",
  "application/x-www-form-urlencoded",
  "application/json; charset=utf-16",
  "application/json; charset=latin1",
  "application/jsonp",
  "text/json",
  "multipart/form-data; boundary=x",
  "application/xml; a=application/json",
])("refuses a body as %s", async (type) => {
  const { status, body } = await t.post('{"thing":{"name":"a"}}', { "content-type": type });
  expect(status).toBe(415);
  expect(body.errors).toEqual(["content-type: must be application/json, in UTF-8"]);
});

test("refuses a body without a type, and one in an unknown coding", async () => {
  const untyped = await t.raw(
    "POST /api/v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
  );
  expect(untyped).toMatch(/^HTTP\/1\.1 415/);
  for (const coding of ["snappy", "br", "gzip, gzip", "constructor"]) {
    const coded = await t.post("{}", { "content-type": "application/json", "content-encoding": coding });
    expect(coded.status, coding).toBe(415);
    expect(coded.body.errors).toEqual(["content-encoding: must be gzip, deflate or none"]);
  }
});

test.each<[string, string | Buffer]>([
  ["cut off", '{"thing":{"name":"planted'],
  ["a trailing comma", '{"a":1,}'],
  ["two values", "{}{}"],
  ["not a number", '{"a":NaN}'],
  ["bad UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ["an overlong UTF-8 form", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
  ["white space", "  "],
])("what is not JSON is a 400: %s", async (_name, bytes) => {
  const { status, body, headers } = await t.post(typeof bytes === "string" ? bytes : new Uint8Array(bytes));
  expect(status).toBe(400);
  expect(headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
  expect(body.type).toBe("/docs/errors#malformed-json");
  expect(JSON.stringify(body)).not.toContain("planted");
});

test.each<[string, unknown, string[]]>([
  ["a list", [], ["body: must be an object"]],
  ["null", null, ["body: must be an object"]],
  ["text", "x", ["body: must be an object"]],
  ["a number", 1, ["body: must be an object"]],
  [
    "all problems",
    { thing: { nmae: 1, size: "x" } },
    [
      "thing.name: is required and must be a string",
      "thing.size: must be a number",
      "thing.nmae: unknown field; did you mean `name`?",
    ],
  ],
  ["an operator", { thing: { name: { $ne: null } } }, ["thing.name: must be a string"]],
])("valid JSON with wrong content is a 422: %s", async (_name, value, errors) => {
  const { status, body } = await t.post(JSON.stringify(value));
  expect(status).toBe(422);
  expect(body.errors).toEqual(errors);
});

test("no body where one is needed says what it must be", async () => {
  const { status, body } = await t.call("POST", "/api/v1/things");
  expect(status).toBe(422);
  expect(body.errors).toEqual(["thing: is required and must be an object"]);
});

test("__proto__ is refused, and pollutes nothing", async () => {
  const { status, body } = await t.post('{"thing":{"name":"a","__proto__":{"polluted":true}}}');
  expect(status).toBe(422);
  expect(body.errors).toEqual(["body: a field may not be called `__proto__`"]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test("deep JSON is refused before anything walks it", async () => {
  const { status, body } = await t.post(`{"thing":${"[".repeat(900)}${"]".repeat(900)}}`);
  expect(status).toBe(422);
  expect(body.errors).toEqual(["body: may be nested at most 32 deep"]);
});

test("a body past the limit is a 413, announced or not", async () => {
  const large = JSON.stringify({ thing: { name: "x".repeat(limit) } });
  expect((await t.post(large)).status).toBe(413);
  const chunked = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
  const answer = await t.raw(
    `POST /api/v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunked}`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 413/);
});

test("a body that says it is huge is refused before it has come", async () => {
  const answer = await t.firstAnswer(
    "POST /api/v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n{",
  );
  expect(answer).toMatch(/^HTTP\/1\.1 413/);
});

test("compressed bodies are read, and counted decompressed", async () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  expect((await t.post(new Uint8Array(gzipSync('{"thing":{"name":"a"}}')), headers)).status).toBe(201);
  const bomb = gzipSync(Buffer.alloc(50_000_000, "["));
  const { status } = await t.post(new Uint8Array(bomb), headers);
  expect(status).toBe(413);
});

test("refuses a body that is not compressed as announced with 400", async () => {
  const { status, body } = await t.post("{}", { "content-type": "application/json", "content-encoding": "gzip" });
  expect(status).toBe(400);
  expect(body.errors).toEqual(["body: could not be read as content-length and content-encoding announce it"]);
});

test("an unknown route is a 404 that says where all are", async () => {
  const { status, body } = await t.call("GET", "/api/v2/things");
  expect(status).toBe(404);
  expect(body.errors).toEqual(["path: route not found; GET /openapi.json lists all"]);
});

test.each([
  ["PUT", "/api/v1/things", "GET, HEAD, POST"],
  ["POST", "/api/v1/things/1", "DELETE, GET, HEAD"],
  ["TRACE", "/api/v1/things/1", "DELETE, GET, HEAD"],
])("%s on %s is a 405 with Allow", async (method, path, allow) => {
  const answer = await t.raw(`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 405/);
  expect(answer).toContain(`Allow: ${allow}\r\n`.toLowerCase().replace(allow.toLowerCase(), allow));
  expect(problemIn(answer).errors).toEqual([`method: must be ${allow}`]);
});

test("query parameters: unknown, wrong and repeated ones are refused together", async () => {
  expect((await t.call("GET", "/api/v1/things?status=active")).body).toEqual({ status: "active" });
  const { status, body } = await t.call("GET", "/api/v1/things?statsu=1&status=x&status=y");
  expect(status).toBe(422);
  expect(body.errors).toEqual([
    "status: is given more than once",
    "status: must be one of `active`, `inactive`",
    "statsu: unknown field; did you mean `status`?",
  ]);
});

test("a query that is too long, or has too many parameters, is refused unread", async () => {
  for (const [query, problem] of [
    [`status=${"x".repeat(4_090)}`, "query: may have at most 4096 characters"],
    ["a&".repeat(50), "query: may have at most 50 parameters"],
  ]) {
    const { status, body } = await t.call("GET", `/api/v1/things?${query}`);
    expect([status, body.errors]).toEqual([422, [problem]]);
  }
  expect((await t.call("GET", `/api/v1/things?${"a&".repeat(49)}`)).body.errors).toContain(
    "a: is given more than once",
  );
});

test("query parameters cannot be nested into objects, nor reach a prototype", async () => {
  for (const query of ["status[$ne]=x", "__proto__[a]=1", "__proto__=1", "constructor=1"])
    expect((await t.call("GET", `/api/v1/things?${query}`)).status, query).toBe(422);
});

test("a path that is not percent-encoding is a 400, a wrong parameter a 422", async () => {
  expect((await t.call("GET", "/api/v1/things/%ff")).status).toBe(400);
  const { status, body } = await t.call("GET", "/api/v1/things/abcd");
  expect(status).toBe(422);
  expect(body.errors).toEqual(["id: must have at most 3 characters"]);
});

test("an unexpected error is a 500 without a leak, and the log has the reason", async () => {
  const { status, body, headers } = await t.call("GET", "/api/v1/broken?token=planted");
  expect(status).toBe(500);
  expect(body).toEqual({
    errors: ["Herald failed; the log has the reason under this request id"],
    problems: [{ detail: "Herald failed; the log has the reason under this request id", code: "internal" }],
    detail: "Herald failed; the log has the reason under this request id",
    type: "/docs/errors#internal",
    title: "Internal error",
    status: 500,
    instance: headers.get("x-request-id"),
  });
  expect(t.lines.join("")).toContain("[masked] went wrong");
  expect(t.lines.join("")).not.toContain("hpt_0123456789abcdef");
});

test("an answer that breaks off half-way is cut off", async () => {
  await expect(t.call("GET", "/api/v1/half")).rejects.toThrow();
});

test("503 has Retry-After, 401 has WWW-Authenticate", async () => {
  expect((await t.call("GET", "/api/v1/away")).headers.get("retry-after")).toBe("5");
  expect((await t.call("GET", "/api/v1/closed")).headers.get("www-authenticate")).toBe("Bearer");
});

test("answers carry the security headers and nothing of the software", async () => {
  const { headers } = await t.call("GET", "/api/v1/things/1");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("content-security-policy")).toBe("default-src 'none';frame-ancestors 'none'");
  expect(headers.has("x-powered-by")).toBe(false);
});

test("one line for each request: pattern, status, time, ids; no path, query, body or token", async () => {
  await t.call("GET", "/api/v1/things/xyz?planted=1", {
    headers: { "x-request-id": "line-3", authorization: "Bearer planted" },
  });
  await t.call("DELETE", "/api/v1/things/xyz", { headers: { "x-request-id": "line-4" } });
  await t.call("GET", "/planted/xyz", { headers: { "x-request-id": "line-5" } });
  await t.post('{"thing":{"name":"planted"}}', { "content-type": "application/json", "x-request-id": "line-6" });
  // The line is written after the response, which the client may receive first.
  const ours = () => t.lines.filter((line) => line.includes('"line-'));
  await expect.poll(() => ours().length).toBe(4);
  const seen = ours().map((line) => JSON.parse(line));
  expect(seen).toMatchObject([
    {
      level: "info",
      msg: "request",
      method: "GET",
      route: "/api/v1/things/:id",
      status: 200,
      requestId: "line-3",
      ms: expect.any(Number),
    },
    {
      level: "info",
      method: "DELETE",
      route: "/api/v1/things/:id",
      status: 404,
      code: "topic-not-found",
      requestId: "line-4",
    },
    { level: "info", method: "GET", route: "unmatched", status: 404, code: "route-not-found", requestId: "line-5" },
    { level: "info", method: "POST", route: "/api/v1/things", status: 201 },
  ]);
  expect(ours().join("")).not.toMatch(/planted|xyz/);
});
