import { publish } from "@herald/bus";
import { batchLimits, bucketOf, DeliverBatchV1, type DeviceId, type ProjectId } from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { partitionPage } from "../src/handlers/expand.ts";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { createExpandedPageStore } from "../src/stores/expansion-store.ts";
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

const stores = () => ({
  audience: createAudienceStore(t.registry.db),
  expansions: createExpandedPageStore(t.registry.db),
  now: () => new Date(),
});

/** Several pages, however few of them are in the sampled buckets: a large audience is estimated. */
const several = many(8_000);

describe("a page of an audience that stays as it is, partitioned again", () => {
  let large: ProjectId;
  let ids: DeviceId[];
  beforeAll(async () => {
    large = await t.newProject();
    ids = await t.seed(several);
  });
  beforeEach(() => t.about(large));

  test("after a crash before anything was published: each device once", async () => {
    const data = t.message(["news"]);
    await partitionPage(stores(), data);
    await t.send(data);
    expect(sorted((await t.outcome(data.notificationId)).devices)).toEqual(sorted(ids));
  });

  test("twice at the same time, from the first to the last", async () => {
    const data = t.message(["news"]);
    await Promise.all([t.send(data), t.send(data), t.send(data)]);
    const { end, devices } = await t.outcome(data.notificationId);
    expect(sorted(devices)).toEqual(sorted(ids));
    expect(end.devices).toBe(several.length);
    const pages = await t.registry.db
      .collection<{ _id: string; fromBucket: number; toBucket: number }>("expansions")
      .find({ projectId: large, _id: { $regex: `^${data.notificationId}/` } })
      .toArray();
    expect(pages.length).toBeGreaterThan(2);
    for (const { _id, fromBucket, toBucket } of pages)
      await t.send({ ...data, page: Number(_id.split("/")[1]), fromBucket, toBucket });
    const hands = await operateBroker(t.registry.broker);
    await eventually(async () => expect(await hands.left("PUSH_CMD", "registry-expand")).toBe(0));
    await hands.close();
    const ends = t.expanded.filter(({ notificationId }) => notificationId === data.notificationId);
    for (const one of ends) expect(one).toEqual(end);
    const after = t.batches.filter(({ notificationId }) => notificationId === data.notificationId);
    const unique = new Map(after.map((batch) => [batch.batchId, batch]));
    expect(sorted([...unique.values()].flatMap(({ devices }) => devices.map(({ id }) => id)))).toEqual(sorted(ids));
  });

  test("a device stays in its page: the page is its bucket's", async () => {
    const { batches } = await t.expand(["news"]);
    const pages = new Map<string, number[]>();
    for (const { batchId, devices } of batches) {
      const page = batchId.split("/")[1] ?? "";
      pages.set(page, [...(pages.get(page) ?? []), ...devices.map(({ id }) => bucketOf(id))]);
    }
    const ranges = [...pages.values()].map((buckets) => [Math.min(...buckets), Math.max(...buckets)] as const);
    ranges.sort(([one], [other]) => one - other);
    for (const [at, [from]] of ranges.entries()) if (at > 0) expect(from).toBeGreaterThan(ranges[at - 1]?.[1] ?? -1);
    expect(pages.size).toBeGreaterThan(2);
  });
});

describe("a page that is partitioned again", () => {
  test("after a crash with a part published: no device is in two batches, and new devices are in no final one", async () => {
    const ids = await t.seed(several);
    const data = t.message(["news"]);
    const first = await partitionPage(stores(), data);
    const published = first.batches[1];
    if (!published) throw new Error("no second batch");
    const batchId = `${data.notificationId}/0/1`;
    const { platform, devices } = published;
    const { notificationId, lane } = data;
    const batch = { batchId, projectId, notificationId, lane, platform, devices: [...devices] };
    await publish(t.registry.bus, DeliverBatchV1, batch, { id: batchId });

    const partitioned = first.batches.flatMap((each) => each.devices.map(({ id }) => id));
    const gone = partitioned.filter((_, at) => at % 7 === 0);
    await t.setStatus(gone, "inactive");
    const late = await t.seed(many(1_500).map((device) => ({ ...device, token: `late ${device.token}` })));
    await t.send(data);

    const result = await t.outcome(notificationId);
    expect(new Set(result.devices).size).toBe(result.devices.length);
    const firstPage = result.batches.filter(({ batchId }) => batchId.startsWith(`${notificationId}/0/`));
    const place = new Map(first.batches.flatMap((each, n) => each.devices.map(({ id }) => [id as string, n] as const)));
    for (const each of firstPage)
      for (const { id } of each.devices)
        if (place.has(id)) expect(`${notificationId}/0/${place.get(id)}`).toBe(each.batchId);
    const got = new Set<string>(result.devices);
    for (const id of ids) if (!gone.includes(id)) expect(got.has(id)).toBe(true);
    expect(late.filter((id) => got.has(id)).length, "the pages after the crash have them").toBeGreaterThan(0);
    const again = firstPage.find((each) => each.batchId === batchId);
    expect(again?.devices).toEqual(devices);
  });

  test("keeps the borders of its first partition when the audience grows a hundredfold", async () => {
    await t.seed(many(40));
    const data = t.message(["news"]);
    const first = await partitionPage(stores(), data);
    expect(first.range).toEqual({ from: 0, to: 4_095 });
    await t.seed(many(4_000).map((device) => ({ ...device, token: `late ${device.token}` })));
    const second = await partitionPage(stores(), data);
    expect(second.range).toEqual(first.range);
    expect(second.batches).toHaveLength(3);
    for (const { devices } of second.batches) expect(devices.length).toBeLessThanOrEqual(batchLimits.devices);
    const members = new Set(second.batches.flatMap(({ devices }) => devices.map(({ id }) => id)));
    for (const { devices } of first.batches) for (const { id } of devices) expect(members.has(id)).toBe(true);
    expect(second.partition).toMatchObject({ devices: 40, batches: first.partition.batches });
  });
});
