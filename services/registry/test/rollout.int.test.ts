import { sendRequest } from "@herald/bus";
import { audienceRequests, bucketOf, type DeviceId, type ProjectId, pagesOfExpansion } from "@herald/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ExpandTest, many, sorted, startExpandTest } from "./expand-fixture.ts";

let t: ExpandTest;
let projectId: ProjectId;
beforeAll(async () => {
  t = await startExpandTest();
});
afterAll(() => t.stop());
beforeEach(async () => {
  projectId = await t.newProject();
});

/** Ranges that have each bucket once, from the middle of the ring on. */
const parts = [
  { from: 1_000, to: 1_040 },
  { from: 1_041, to: 4_095 },
  { from: 0, to: 0 },
  { from: 1, to: 999 },
];

const expandAll = async (targets: readonly string[], ids: readonly DeviceId[]) => {
  const found: string[] = [];
  for (const [n, buckets] of parts.entries()) {
    const { end, batches, devices } = await t.expand(targets, {
      page: n * pagesOfExpansion,
      expansion: { n, buckets },
    });
    const expected = ids.filter((id) => bucketOf(id) >= buckets.from && bucketOf(id) <= buckets.to);
    expect(sorted(devices)).toEqual(sorted(expected));
    expect(end).toMatchObject({ n, devices: devices.length, batches: batches.length });
    for (const { batchId, expiresAt } of batches) {
      expect(Math.floor(Number(batchId.split("/")[1]) / pagesOfExpansion)).toBe(n);
      expect(expiresAt).toBeDefined();
    }
    found.push(...devices);
  }
  expect(sorted(found)).toEqual(sorted(ids));
};

describe("the parts of a rollout", () => {
  test("have the devices of their buckets, page after page, and all of them each device once", async () => {
    const ids = await t.seed(many(6_000));
    await expandAll(["topic:news"], ids);
    await expandAll(["all"], ids);
  });

  test("have those of a small audience, and of devices that are named", async () => {
    const ids = await t.seed(many(60));
    await expandAll(["topic:news"], ids);
    await expandAll(
      ids.map((id) => `device:${id}`),
      ids,
    );
  });
});

test("the size of an audience is known without reading it", async () => {
  await t.seed(many(90, (at) => (at % 3 === 0 ? ["rare"] : [])));
  const ask = (targets: string[]) => sendRequest(t.registry.bus, audienceRequests.size, { projectId, targets });
  expect(await ask(["all"])).toEqual({ devices: 90 });
  expect(await ask(["topic:rare"])).toEqual({ devices: 30 });
});
