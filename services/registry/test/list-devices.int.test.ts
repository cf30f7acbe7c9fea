import { ListDevices, type ProjectId } from "@herald/contracts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type RegistryTest, startRegistryTest } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

let registry: RegistryTest;
let projectId: ProjectId;

beforeAll(async () => {
  registry = await startRegistryTest();
});
afterAll(() => registry.stop());
beforeEach(async () => {
  projectId = await registry.project();
});

test("10,500 devices are listed by pages, counts, statuses and walks", async () => {
  const tokens = Array.from({ length: 10_500 }, (_, at) => ({ token: `t${at}`, platform: "android" as const }));
  for await (const _ of seedDevices(registry.db, projectId, tokens));
  const inactive = await registry.db
    .collection("devices")
    .find({ projectId }, { sort: { _id: 1 }, limit: 7 })
    .toArray();
  await registry.db
    .collection("devices")
    .updateMany({ projectId, _id: { $in: inactive.map(({ _id }) => _id) } }, { $set: { status: "inactive" } });

  const page = (page: number, status?: "active" | "inactive") =>
    registry.ask(ListDevices, { projectId, status, page: { by: "page", page, perPage: 100 } });
  expect(await page(1)).toMatchObject({ pagination: { count: 10_500, pages: 105, from: 1, to: 100 } });
  expect(await page(105)).toMatchObject({ pagination: { from: 10_401, to: 10_500 } });
  expect(await page(106)).toMatchObject({ data: [], pagination: { from: 0, to: 0 } });
  expect(await page(1, "inactive")).toMatchObject({ pagination: { count: 7 } });
  expect(await page(1, "active")).toMatchObject({ pagination: { count: 10_493 } });

  const seen: string[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const walked: { data: { id: string }[]; next?: string | null } = await registry.ask(ListDevices, {
      projectId,
      page: { by: "key", after, perPage: 100 },
    });
    seen.push(...walked.data.map(({ id }) => id));
    after = walked.next ?? null;
  }
  expect(seen).toHaveLength(10_500);
  expect(seen).toEqual([...new Set(seen)].sort());
});
