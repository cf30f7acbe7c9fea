import { deviceRequests, type ExportedDevice, type ProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { failure, useRegistry } from "./registry-fixture.ts";
import { type SeedDevice, seedDevices } from "./seed-devices.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
});

const seed = async (devices: SeedDevice[], of = projectId): Promise<string[]> => {
  const ids: string[] = [];
  for await (const some of seedDevices(registry.db, of, devices)) ids.push(...some);
  return ids.sort();
};
const devices = (count: number, more: Partial<SeedDevice> = {}): SeedDevice[] =>
  Array.from({ length: count }, (_, at) => ({ token: `t${at}`, platform: "ios", topics: ["news"], ...more }));

/** Reads one page after another, as the gateway does. */
const exportAll = async ({ after: from, ...rest }: { after?: string; [name: string]: unknown } = {}, limit = 100) => {
  const rows = [];
  let pages = 0;
  let after = from;
  for (;;) {
    const page = await registry.ask(deviceRequests.export, {
      projectId,
      keys: false,
      limit,
      ...(after && { after }),
      ...rest,
    });
    rows.push(...page.rows.map((row): ExportedDevice => JSON.parse(row)));
    pages++;
    if (page.next === null) return { rows, pages };
    after = page.next;
  }
};

test("every device of the project comes once, sorted by id, as lists show it", async () => {
  const ids = await seed(devices(250, { metadata: { plan: "pro" } }));
  await seed(devices(5), await registry.project());
  const { rows, pages } = await exportAll();
  expect(rows.map(({ id }) => id)).toEqual(ids);
  expect(pages).toBe(3);
  expect(rows[0]).toMatchObject({ platform: "ios", provider: "apns", topics: ["news"], metadata: { plan: "pro" } });
  expect(rows[0]).not.toHaveProperty("credentialHash");
});

test("the filters of the list choose devices", async () => {
  await seed(devices(10));
  const android = await seed(devices(10, { platform: "android" }));
  const { rows } = await exportAll({ platform: "android" }, 3);
  expect(rows.map(({ id }) => id)).toEqual(android);
  expect((await exportAll({ createdBefore: "2020-01-01T00:00:00Z" })).rows).toEqual([]);
});

test.each([1, 7, 1_000])("with `match` the devices that a send reaches come once, by pages of %d", async (limit) => {
  const wanted = await seed(devices(20));
  await seed(devices(20, { platform: "android", topics: [] }));
  const found = await exportAll({ match: "topic:news" }, limit);
  expect(found.rows.map(({ id }) => id).sort()).toEqual(wanted);
});

test("with `match` an export resumes after any of its rows", async () => {
  await seed(devices(15));
  const { rows } = await exportAll({ match: "topic:news" });
  const ids = rows.map(({ id }) => id);
  expect(ids).not.toEqual(ids.toSorted());
  for (const [at, after] of ids.entries()) {
    const { rows: rest } = await exportAll({ match: "topic:news", after }, 7);
    expect(rest.map(({ id }) => id)).toEqual(ids.slice(at + 1));
  }
});

test("the other filters and the keys combine with `match`", async () => {
  const keys = { p256dh: "B".repeat(87), auth: "A".repeat(22) };
  await seed(devices(5));
  const [web] = await seed(devices(1, { platform: "web", token: "https://push.example/1", keys }));
  const found = await exportAll({ match: "topic:news", platform: "web", keys: true });
  expect(found.rows).toEqual([expect.objectContaining({ id: web, keys })]);
  expect((await exportAll({ match: "topic:news", createdBefore: "2020-01-01T00:00:00Z" })).rows).toEqual([]);
});

test("with `match` a page of large devices has fewer rows and loses none", async () => {
  const large = { metadata: { text: "x".repeat(16_000) }, identifiers: { text: "y".repeat(16_000) } };
  const ids = await seed(devices(300, large));
  const { rows, pages } = await exportAll({ match: "topic:news" }, 300);
  expect(rows.map(({ id }) => id).sort()).toEqual(ids);
  expect(pages).toBeGreaterThan(1);
});

test("`after` with `match` is a row or a position", async () => {
  expect(await failure(exportAll({ match: "all", after: "9999/1/" }))).toMatchObject({ code: "validation-failed" });
});

test("the keys of a Web Push subscription come only when they are asked for", async () => {
  const keys = { p256dh: "B".repeat(87), auth: "A".repeat(22) };
  await seed(devices(1, { platform: "web", token: "https://push.example/1", keys }));
  expect((await exportAll()).rows[0]).not.toHaveProperty("keys");
  expect((await exportAll({ keys: true })).rows[0]).toMatchObject({ keys });
});

test("a page of large devices has fewer rows and loses none", async () => {
  const large = { metadata: { text: "x".repeat(16_000) }, identifiers: { text: "y".repeat(16_000) } };
  const ids = await seed(devices(300, large));
  const { rows, pages } = await exportAll({}, 300);
  expect(rows.map(({ id }) => id)).toEqual(ids);
  expect(pages).toBeGreaterThan(1);
});
