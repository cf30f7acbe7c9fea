import type { Device } from "@herald/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
const devices: Device[] = [];

beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
  for (let index = 0; index < 45; index++) {
    const body = { device: { token: apnsToken(), platform: "ios" } };
    devices.push((await system.call("POST /api/v1/devices", { token: project.token, body })).body.data);
  }
});
afterAll(() => system.stop());

const list = (query = "") => system.call(`GET /api/v1/devices${query}`, { token: project.token });
const ids = (rows: Device[]) => rows.map(({ id }) => id);

/** The `Link` header as targets by relation. */
const links = (header: string | null): Record<string, string> =>
  Object.fromEntries(
    (header ?? "").split(", ").map((part) => {
      const [, target = "", relation = ""] = /^<([^>]*)>; rel="(\w+)"$/.exec(part) ?? [];
      return [relation, target];
    }),
  );

describe("numbered pages", () => {
  test("are walked by their links from the first to the last", async () => {
    const seen: string[] = [];
    let next: string | undefined = "/api/v1/devices?per_page=20";
    let pages = 0;
    while (next !== undefined) {
      const page = await system.call(`GET ${next}`, { token: project.token });
      seen.push(...ids(page.body.data));
      const related = links(page.headers.get("link"));
      expect(related.first).toBe("/api/v1/devices?per_page=20&page=1");
      expect(related.last).toBe("/api/v1/devices?per_page=20&page=3");
      next = related.next;
      pages++;
    }
    expect(pages).toBe(3);
    expect(seen).toEqual(ids(devices));
  });

  test("have their range and the total count", async () => {
    expect((await list()).body.pagination).toEqual({ count: 45, page: 1, pages: 3, from: 1, to: 20, last: 3 });
    expect((await list("?page=3&limit=20")).body.pagination).toMatchObject({ from: 41, to: 45 });
    const past = await list("?page=9&items=20");
    expect(past.body).toMatchObject({ data: [], pagination: { page: 9, from: 0, to: 0, count: 45 } });
    expect(links(past.headers.get("link")).prev).toBe("/api/v1/devices?items=20&page=3");
    expect(links(past.headers.get("link"))).not.toHaveProperty("next");
  });

  test("keep the list's other parameters in their links", async () => {
    const page = await list("?status=active&per_page=40");
    expect(links(page.headers.get("link")).next).toBe("/api/v1/devices?status=active&per_page=40&page=2");
  });
});

test("a walk by key passes every row once and ends", async () => {
  const seen: string[] = [];
  let after: string | null = "";
  while (after !== null) {
    const page: { body: { data: Device[]; next: string | null }; headers: Headers } = await list(
      `?per_page=10&after=${after}`,
    );
    expect(page.body).not.toHaveProperty("pagination");
    seen.push(...ids(page.body.data));
    after = page.body.next;
    const related = links(page.headers.get("link"));
    expect(related.next).toBe(after === null ? undefined : `/api/v1/devices?per_page=10&after=${after}`);
  }
  expect(seen).toEqual(ids(devices));
});

test("the newest come first where they are asked for, and links keep order and filters", async () => {
  const page = await list("?sort=-created_at&platform=ios&per_page=40");
  expect(ids(page.body.data)).toEqual(ids(devices).toReversed().slice(0, 40));
  expect(links(page.headers.get("link")).next).toBe("/api/v1/devices?sort=-created_at&platform=ios&per_page=40&page=2");
  const walk = await list("?sort=-created_at&platform=ios&per_page=40&after=");
  expect(ids(walk.body.data)).toEqual(ids(page.body.data));
  const token = devices[7]?.token;
  expect(ids((await list(`?token=${token}`)).body.data)).toEqual([devices[7]?.id]);
  expect((await list("?platform=web")).body.data).toEqual([]);
  const matching = await list("?match=all&per_page=50");
  expect(matching.body).toMatchObject({ next: null });
  expect(ids(matching.body.data)).toEqual(ids(devices));
});

test("a page of devices with all the metadata they may have is larger than a message, and comes whole", async () => {
  const full = await system.project();
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`k${index}`, "ä".repeat(500)]));
  for (let index = 0; index < 100; index++) {
    const body = { device: { token: apnsToken(), platform: "ios", metadata } };
    expect((await system.call("POST /api/v1/devices", { token: full.token, body })).status).toBe(201);
  }
  const page = await system.call("GET /api/v1/devices?per_page=100", { token: full.token });
  expect(page.status).toBe(200);
  expect(page.body.data).toHaveLength(100);
  expect(page.body.data.every((device: Device) => device.metadata.k15 === "ä".repeat(500))).toBe(true);
});

test.each([
  ["?page=0", ["page: must be a whole number from 1 to 1000000"]],
  ["?page=-1", ["page: must be a whole number from 1 to 1000000"]],
  ["?page=1e3", ["page: must be a whole number from 1 to 1000000"]],
  ["?page=9999999999", ["page: must be a whole number from 1 to 1000000"]],
  ["?per_page=101", ["per_page: must be a whole number from 1 to 100"]],
  ["?per_page=", ["per_page: must be a whole number from 1 to 100"]],
  ["?items=5&limit=5", ["per_page: `items` and `limit` are other names of it: send one of the three"]],
  ["?page=2&after=", ["after: cannot be combined with page"]],
  ["?page=1&page=2", ["page: is given more than once"]],
  ["?status=gone", ["status: must be one of `active`, `inactive`"]],
  ["?pge=2", ["pge: unknown field; did you mean `page`?"]],
  [
    "?page[$gt]=1",
    [
      "page[$gt]: unknown field; known here: `page`, `per_page`, `items`, `limit`, `after`, `sort`, `created_after`, `created_before`, `status`, `platform`, `user_id`, `app`, `token`, `match`",
    ],
  ],
  ["?platform=windows", ["platform: must be one of `ios`, `android`, `web`"]],
  ["?user_id=a/b", ["user_id: must be 1 to 128 visible ASCII characters without `/`"]],
  ["?token=", ["token: may not be empty"]],
  ["?sort=updated_at", ["sort: must be one of `created_at`, `-created_at`"]],
  ["?created_after=today", ["created_after: must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00Z"]],
  ["?match=weather:rain", [expect.stringContaining("match: is not a target: known prefixes are device:, topic:")]],
  ["?match=topic:a&page=2", [expect.stringContaining("page: cannot be combined with match")]],
  ["?match=topic:a&sort=created_at", [expect.stringContaining("sort: cannot be combined with match")]],
  ["?match=topic:a&status=active", [expect.stringContaining("status: cannot be combined with match")]],
  [
    `?match=condition:${encodeURIComponent(Array.from({ length: 201 }, () => "'a' in topics").join("||"))}`,
    [expect.stringMatching(/^(match: has more than 200 clauses|query: may have at most)/)],
  ],
  [
    "?created_after=2030-01-02T00:00:00Z&created_before=2030-01-02T01:00:00%2B01:00",
    ["created_before: must be later than created_after"],
  ],
])("%s is refused in words", async (query, errors) => {
  const answer = await list(query);
  expect([answer.status, answer.problem.errors]).toEqual([422, errors]);
});

test.each([
  ["kind=Order", ["kind: must be a slug: 1 to 64 of `a-z`, `0-9`, `_` and `-`, such as `order-shipped`"]],
  ["label=campaign", ["label: must be <name>:<value> of a label, such as campaign:spring"]],
  ["label=Campaign:x&kind=", ["label: must be", "kind: must be a slug"]],
  ["label=a:b&label=c:d", ["label: is given more than once"]],
  ["labels=a:b", ["labels: unknown field; did you mean `label`?"]],
])("?%s is refused in words, for notifications and those of a user", async (query, errors) => {
  for (const path of ["notifications", "users/u_1/notifications"]) {
    const { status, body } = await system.call(`GET /api/v1/${path}?${query}`, { token: project.token });
    expect([status, body.errors.length]).toEqual([422, errors.length]);
    for (const error of errors) expect(body.errors.join("\n")).toContain(error);
  }
});
