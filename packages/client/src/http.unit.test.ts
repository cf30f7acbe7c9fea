import { describe, expect, test } from "vitest";
import { answer, hangUp, noAnswer, problem, startScriptedServer } from "../test/scripted-server.ts";
import { HeraldError } from "./error.ts";
import { Herald } from "./herald.ts";
import { backoffMs } from "./http.ts";

const token = "hpt_test";
const ok = answer(200, { data: { id: "ntf_1" } });
const notification = { title: "Hello", targets: ["all" as const] };

/** The error that a call rejects with. */
const errorOf = async (call: Promise<unknown>): Promise<HeraldError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(HeraldError);
  return error as HeraldError;
};

describe("a call is tried again", () => {
  test.each([
    ["when the rate limit says later", problem(429, "rate-limited", { "retry-after": "0" })],
    ["when the bus is unavailable", problem(503, "bus-unavailable", { "retry-after": "0" })],
    ["when a proxy got no answer", answer(502, "Bad Gateway", { "content-type": "text/html" })],
    ["when no answer comes", hangUp],
    ["when its first try still runs", problem(409, "request-in-progress", { "retry-after": "0" })],
  ])("%s, under the same key", async (_, first) => {
    const server = await startScriptedServer([first, ok]);
    const herald = new Herald({ url: server.url, token });
    await herald.notifications.send(notification);
    const [one, two] = server.taken;
    expect(server.taken).toHaveLength(2);
    expect(one?.headers["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(two?.headers["idempotency-key"]).toBe(one?.headers["idempotency-key"]);
    expect(two?.body).toBe(one?.body);
  });

  test("when an attempt takes longer than it may", async () => {
    const server = await startScriptedServer([noAnswer, ok]);
    // Long enough for the second attempt, also on a busy machine.
    await new Herald({ url: server.url, token, timeoutMs: 1_000 }).devices.get("dev_1");
    expect(server.taken).toHaveLength(2);
  });

  test("no sooner than Retry-After says, and later each time", () => {
    expect(backoffMs(1, 2)).toBeGreaterThan(2_000);
    expect(backoffMs(3)).toBeGreaterThanOrEqual(2 * 250);
    expect(backoffMs(3)).toBeLessThanOrEqual(4 * 250);
  });

  test("as often as it may, and then rejects with the last answer", async () => {
    const server = await startScriptedServer([problem(503, "queue-full", { "retry-after": "0" })]);
    const herald = new Herald({ url: server.url, token, maxRetries: 1 });
    expect(await errorOf(herald.notifications.send(notification))).toMatchObject({ slug: "queue-full", status: 503 });
    expect(server.taken).toHaveLength(2);
  });
});

describe("a call is not tried again", () => {
  test.each([
    ["when it is refused", problem(422, "validation-failed"), "validation-failed"],
    ["when Herald fails", problem(500, "internal"), "internal"],
    ["when its key was used otherwise", problem(422, "idempotency-key-reused"), "idempotency-key-reused"],
    ["when the wait would be an hour", problem(429, "quota-exceeded", { "retry-after": "3600" }), "quota-exceeded"],
    ["when it is sent elsewhere", answer(308, "", { location: "https://x.example/" }), "unexpected-answer"],
  ])("%s", async (_, step, slug) => {
    const server = await startScriptedServer([step, ok]);
    const herald = new Herald({ url: server.url, token });
    expect((await errorOf(herald.notifications.send(notification))).slug).toBe(slug);
    expect(server.taken).toHaveLength(1);
  });
});

test("a caller who wants to know at once waits no longer than `maxWaitMs`", async () => {
  const later = problem(429, "quota-exceeded", { "retry-after": "2" });
  const server = await startScriptedServer([later, ok]);
  const herald = new Herald({ url: server.url, token, maxWaitMs: 1_000 });
  const error = await errorOf(herald.notifications.send(notification));
  expect([error.slug, error.retryAfter]).toEqual(["quota-exceeded", 2]);
  expect(server.taken).toHaveLength(1);
});

test("a key of the caller's own is sent as it is", async () => {
  const server = await startScriptedServer([ok]);
  await new Herald({ url: server.url, token }).notifications.send(notification, { idempotencyKey: "order-17" });
  expect(server.taken[0]?.headers["idempotency-key"]).toBe("order-17");
});

test("an error has everything that the problem document says", async () => {
  const document = {
    errors: ["notification.targets: at least one target is required"],
    problems: [{ pointer: "/notification/targets", detail: "at least one target is required", code: "too-small" }],
    type: "/docs/errors#validation-failed",
    title: "The content is not valid",
    status: 422,
    instance: "req-1",
  };
  const server = await startScriptedServer([answer(422, document)]);
  const error = await errorOf(
    new Herald({ url: server.url, token }).notifications.send({ ...notification, targets: [] }),
  );
  expect(error).toMatchObject({
    slug: "validation-failed",
    status: 422,
    errors: document.errors,
    problems: document.problems,
    requestId: "req-1",
    message: document.errors[0],
  });
});

test("what answers without being Herald is said so, with its address", async () => {
  const server = await startScriptedServer([answer(200, "<html>", { "content-type": "text/html" })]);
  const error = await errorOf(new Herald({ url: server.url, token }).devices.get("dev_1"));
  expect(error.slug).toBe("unexpected-answer");
  expect(error.message).toContain(`${server.url}/api/v1/devices/dev_1 answered 200`);
});

test("an empty answer where Herald answers data is not Herald's", async () => {
  const server = await startScriptedServer([(response) => response.writeHead(200).end()]);
  const error = await errorOf(new Herald({ url: server.url, token }).devices.get("dev_1"));
  expect(error).toMatchObject({ slug: "unexpected-answer", status: 200 });
});

test("a file is uploaded as it is, once an attempt, for the project of an operator", async () => {
  const stored = (linesStored: number, status = "uploading") =>
    answer(200, { data: { lines_stored: linesStored, status } });
  const server = await startScriptedServer([stored(0), hangUp, stored(2), stored(3, "processing")]);
  const herald = new Herald({ url: server.url, token, project: "prj_1" });
  const options = { contentType: "text/csv" };
  expect(await herald.imports.upload("imp_1", () => "a,b,c", options)).toMatchObject({ lines_stored: 3 });
  const uploads = server.taken.filter(({ method }) => method === "PUT");
  expect(uploads.map(({ url, body }) => [url, body])).toEqual([
    ["/api/v1/imports/imp_1/content?after_line=0", "a,b,c"],
    ["/api/v1/imports/imp_1/content?after_line=2", "a,b,c"],
  ]);
  expect(uploads[0]?.headers).toMatchObject({ "content-type": "text/csv", "herald-project": "prj_1" });
});

test("a URL with a password is refused without showing it", () => {
  const make = (url: string) => () => new Herald({ url, token: "hpt_1" });
  expect(make("https://me:secret@herald.example.com")).toThrow(/^url: must have no user and no password in it$/);
  expect(make("https://token@herald.example.com")).toThrow(/^url: must have no user/);
});

test("where nothing listens, the error names the address and never the token", async () => {
  const error = await errorOf(new Herald({ url: "http://127.0.0.1:9", token, maxRetries: 0 }).devices.get("dev_1"));
  expect([error.slug, error.status]).toEqual(["unreachable", undefined]);
  expect(error.message).toContain("http://127.0.0.1:9");
  expect(JSON.stringify(error) + error.message + error.stack).not.toContain(token);
});

test.each([
  ["url", { url: "herald", token }],
  ["token", { url: "http://localhost", token: "hpt_1\n" }],
])("an impossible %s is refused at once, without being shown", (field, options) => {
  expect(() => new Herald(options)).toThrow(new RegExp(`^${field}: must be`));
});

test.for(["call", "client"])(
  "an aborted signal of the %s ends a call while it waits for its next try",
  async (owner) => {
    const leaving = new AbortController();
    const server = await startScriptedServer([
      (...taken) => {
        problem(503, "bus-unavailable", { "retry-after": "30" })(...taken);
        setImmediate(() => leaving.abort(new Error("enough")));
      },
    ]);
    const { signal } = leaving;
    const herald = new Herald({ url: server.url, token, ...(owner === "client" && { signal }) });
    const call = herald.devices.get("dev_1", owner === "call" ? { signal } : undefined);
    await expect(call).rejects.toThrow("enough");
    expect(server.taken).toHaveLength(1);
  },
);

test("an id is one segment of the path, whatever is in it", async () => {
  const server = await startScriptedServer([ok]);
  await new Herald({ url: server.url, token }).devices.get("../topics?x=1");
  expect(server.taken[0]?.url).toBe("/api/v1/devices/..%2Ftopics%3Fx%3D1");
});

test("a list reads the next page only when its rows are wanted", async () => {
  const server = await startScriptedServer([
    answer(200, { data: [{ id: 1 }, { id: 2 }], next: "two" }),
    answer(200, { data: [{ id: 3 }], next: null }),
  ]);
  const list = new Herald({ url: server.url, token }).devices.list({ status: "active", perPage: 2 });
  expect(server.taken).toHaveLength(0);
  const ids: unknown[] = [];
  for await (const { id } of list) {
    expect(server.taken).toHaveLength(Number(id) > 2 ? 2 : 1);
    ids.push(id);
  }
  expect(ids).toEqual([1, 2, 3]);
  expect(server.taken.map(({ url }) => url)).toEqual([
    "/api/v1/devices?status=active&per_page=2&after=",
    "/api/v1/devices?status=active&per_page=2&after=two",
  ]);
});

test("options of a list are query parameters", async () => {
  const server = await startScriptedServer([answer(200, { data: [], next: null })]);
  const options = { sort: "-created_at", createdAfter: new Date(0), userId: "u_1", platform: undefined } as const;
  for await (const _ of new Herald({ url: server.url, token }).devices.list(options)) throw new Error("there is none");
  const { searchParams } = new URL(server.taken[0]?.url ?? "", server.url);
  expect(Object.fromEntries(searchParams)).toEqual({
    sort: "-created_at",
    created_after: "1970-01-01T00:00:00.000Z",
    user_id: "u_1",
    per_page: "100",
    after: "",
  });
});

test("a cancel whose answer was lost finds the notification cancelled", async () => {
  const server = await startScriptedServer([
    hangUp,
    problem(409, "notification-final"),
    answer(200, { data: { id: "ntf_1", status: "cancelled" } }),
  ]);
  expect(await new Herald({ url: server.url, token }).notifications.cancel("ntf_1")).toMatchObject({
    status: "cancelled",
  });
});

test.each([
  ["worked if the answer to its first attempt was lost", hangUp, undefined],
  [
    "found nothing if its first attempt was refused",
    problem(429, "rate-limited", { "retry-after": "0" }),
    "device-not-found",
  ],
])("a retried DELETE that answers 404 %s", async (_, first, slug) => {
  const server = await startScriptedServer([first, problem(404, "device-not-found")]);
  const gone = new Herald({ url: server.url, token }).devices.delete("dev_1");
  if (slug === undefined) await gone;
  else expect((await errorOf(gone)).slug).toBe(slug);
  expect(server.taken).toHaveLength(2);
});
