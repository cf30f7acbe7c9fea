import { once } from "node:events";
import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { type Device, deviceRequests, newDeviceId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { adminToken, apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

/** Long enough for two readers to stall at the same time. */
const drainTimeoutMs = 5_000;
let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest({ limits: { projectExports: 2, exports: 3 }, drainTimeoutMs });
});
afterAll(() => system.stop());
beforeEach(async () => {
  const { id } = await system.project();
  project = { id, token: await system.token({ id, token: "" }, ["export"]) };
});
afterEach(() => {
  system.peers.failures.clear();
  system.peers.asked.length = 0;
});

let made = 0;
const addDevices = (count: number, more: Partial<Device> = {}): string[] =>
  Array.from({ length: count }, () => {
    // Ids of the same millisecond are in random order.
    const id = newDeviceId(new Date(1_700_000_000_000 + made++));
    const at = "2030-01-01T00:00:00.000Z";
    const value = { token: apnsToken(), platform: "ios", metadata: {}, identifiers: {}, status: "active" } as const;
    system.peers.devices.set(id, {
      projectId: project.id as never,
      value: { id, ...value, topics: [], user_id: null, created_at: at, updated_at: at, ...more },
    });
    return id;
  });

const get = (query = "", headers: Record<string, string> = {}) =>
  system.call(`GET /api/v1/exports/devices${query}`, { token: project.token, headers });
const idsOf = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).id);
const pages = () =>
  system.peers.asked.filter(({ question }) => question === deviceRequests.export.name) as {
    data: { after?: string };
  }[];
const pagesAsked = () => pages().length;

test("every row comes once, over many pages, as NDJSON", async () => {
  const ids = addDevices(1_500);
  const { status, headers, text } = await get();
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(idsOf(text)).toEqual(ids);
  expect(pagesAsked()).toBeGreaterThan(1);
});

test("without rows it is empty, with the header row of a CSV", async () => {
  expect(await get()).toMatchObject({ status: 200, text: "" });
  const { text, headers } = await get("", { accept: "text/csv" });
  expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(text).toMatch(/^id,token,platform,.*\r\n$/);
});

test("`format` is stronger than Accept, and a resumed CSV has no header row", async () => {
  const [first = "", ...others] = addDevices(3, { metadata: { note: "=1+1" }, user_id: "=cmd" });
  const whole = await get("?format=csv", { accept: "application/x-ndjson" });
  expect(whole.text.split("\r\n")).toHaveLength(5);
  expect(whole.text).toContain(",'=cmd,");
  expect(whole.text).toContain('"{""note"":""=1+1""}"');
  const rest = await get(`?format=csv&after=${first}`);
  expect(whole.text.endsWith(rest.text)).toBe(true);
  expect(rest.text.split("\r\n")).toHaveLength(others.length + 1);
});

test("gzip is used when the client takes it", async () => {
  const ids = addDevices(300);
  const socket = connect(Number(new URL(system.address()).port), "127.0.0.1");
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  socket.write(
    `GET /api/v1/exports/devices HTTP/1.0\r\nhost: x\r\nauthorization: Bearer ${project.token}\r\naccept-encoding: gzip\r\n\r\n`,
  );
  await once(socket, "close");
  const answer = Buffer.concat(parts);
  const end = answer.indexOf("\r\n\r\n");
  expect(answer.subarray(0, end).toString()).toMatch(/content-encoding: gzip/i);
  expect(idsOf(gunzipSync(answer.subarray(end + 4)).toString())).toEqual(ids);
});

test.each(["identity", "gzip"])(
  "a failure in the middle cuts the body (%s), and the export is resumed after the last row",
  async (coding) => {
    // Five pages: the first reaches the client while others are read.
    const ids = addDevices(3_000);
    let seen = "";
    const response = await fetch(`${system.address()}/api/v1/exports/devices`, {
      headers: { authorization: `Bearer ${project.token}`, "accept-encoding": coding },
    });
    expect(response.status).toBe(200);
    system.peers.failures.set(
      deviceRequests.export.name,
      new HeraldError("database-unavailable", "the database is unavailable"),
    );
    const read = async () => {
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) seen += text;
    };
    await expect(read()).rejects.toThrow();
    system.peers.failures.clear();
    const whole = idsOf(seen.slice(0, seen.lastIndexOf("\n") + 1));
    expect(whole.length).toBeLessThan(ids.length);
    const rest = await eventually(async () => {
      const answer = await get(`?after=${whole.at(-1) ?? ""}`);
      expect(answer.status).toBe(200);
      return answer;
    });
    expect([...whole, ...idsOf(rest.text)]).toEqual(ids);
  },
);

test("a failure before the first row is an answer like any other", async () => {
  addDevices(1);
  system.peers.failures.set(
    deviceRequests.export.name,
    new HeraldError("database-unavailable", "the database is unavailable"),
  );
  const answer = await get();
  expect(answer.status).toBe(503);
  expect(answer.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
});

test.each([
  ["?after=x", "after: must be empty, or the `id` of a row"],
  ["?format=xml", "format: "],
  ["?include=secrets", "include: "],
  ["?page=1", "page: "],
  ["?match=weather:rain", "match: is not a target"],
  ["?match=topic:a&status=active", "status: cannot be combined with match"],
])("%s is refused", async (query, message) => {
  const { status, problem } = await get(query);
  expect(status).toBe(422);
  expect(problem.errors[0]).toContain(message);
});

test.each([
  ["devices", { platform: "ios", user_id: "u_1", token: "t", match: "topic:a" }],
  ["devices", { status: "inactive", platform: "web" }],
  ["notifications", { status: "completed", kind: "news", label: "campaign:spring" }],
])("the filters of the list of %s reach the service that exports them: %j", async (name, filter) => {
  const range = { created_after: "2030-01-01T00:00:00Z", created_before: "2030-02-01T00:00:00Z" };
  const query = new URLSearchParams({ ...filter, ...range });
  expect((await system.call(`GET /api/v1/exports/${name}?${query}`, { token: project.token })).status).toBe(200);
  const { data } = system.peers.asked.find(({ question }) => question.endsWith(`${name}.export`)) ?? {};
  const { created_after: createdAfter, created_before: createdBefore } = range;
  expect(data).toMatchObject({ ...filter, createdAfter, createdBefore });
});

test("the scope `export` is needed, and a token has it only when it is named", async () => {
  const created = await system.project();
  const { status, problem } = await system.call("GET /api/v1/exports/devices", { token: created.token });
  expect(status).toBe(403);
  expect(problem.errors[0]).toContain("lacks the scope `export`");
});

/** A client that sends its request and does not read the response. */
const slowReader = () => {
  const socket = connect(Number(new URL(system.address()).port), "127.0.0.1");
  socket.pause();
  socket.on("error", () => {});
  // A reset closes a socket that does not read, too.
  const closed = once(socket, "close");
  const headers = `host: x\r\nconnection: close\r\nauthorization: Bearer ${project.token}`; // if it is not cut off, it ends on its own
  socket.write(`GET /api/v1/exports/devices HTTP/1.1\r\n${headers}\r\n\r\n`);
  return { socket, closed };
};

test("a slow reader holds two pages and a slot until it is cut off; others are served beside it", async () => {
  addDevices(20_000, { metadata: { text: "x".repeat(2_000) } });
  const reader = slowReader();
  await eventually(() => expect(pagesAsked()).toBeGreaterThan(0));
  // Without rows it takes a slot only for a moment.
  const pastEnd = "dev_zzzzzzzzzzzzzzzzzzzzzzzzzz";
  const empty = () => get(`?after=${pastEnd}`);
  expect(await empty()).toMatchObject({ status: 200, text: "" });
  const second = slowReader();
  const begun = () => pages().filter(({ data }) => data.after === undefined);
  await eventually(() => expect(begun()).toHaveLength(2));
  const refused = await empty();
  expect(refused.status).toBe(429);
  expect(refused.problem.errors[0]).toContain("exports: a project may have at most 2 open here");
  await eventually(async () => expect((await empty()).status).toBe(200), { timeoutMs: 20_000 });
  // Only the sockets' buffers and two pages, far fewer than the pages of 20,000 rows.
  expect(pages().filter(({ data }) => data.after !== pastEnd).length).toBeLessThan(20);
  for (const { socket, closed } of [reader, second]) {
    socket.resume();
    await closed;
  }
}, 90_000);

test("an export ends when its token is revoked", async () => {
  addDevices(20_000, { metadata: { text: "x".repeat(500) } });
  const response = await fetch(`${system.address()}/api/v1/exports/devices`, {
    headers: { authorization: `Bearer ${project.token}`, "accept-encoding": "identity" },
  });
  const { body } = await system.call(`GET /admin/v1/projects/${project.id}/tokens`, { token: adminToken });
  for (const { id } of body.data)
    await request(system.address(), `DELETE /admin/v1/projects/${project.id}/tokens/${id}`, { token: adminToken });
  await eventually(async () => expect((await get()).status).toBe(401));
  await expect(response.text()).rejects.toThrow();
});
