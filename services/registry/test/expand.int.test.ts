import { type Consuming, defineHandler, type Handler, publish } from "@herald/bus";
import {
  DeliverBatchV1,
  type DeviceId,
  type DurableName,
  deviceBucket,
  ExpandedV1,
  ExpandV1,
  type Lane,
  laneOf,
  type NotificationId,
  newDeviceId,
  newNotificationId,
  type Platform,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dealPage } from "../src/handlers/deal-page.ts";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { createExpansionStore } from "../src/stores/expansion-store.ts";
import { type SeedDevice, seedDevices } from "../src/stores/seed-devices.ts";
import { type RegistryTest, startRegistryTest } from "./registry-fixture.ts";

let registry: RegistryTest;
let projectId: ProjectId;
const batches: DeliverBatchV1[] = [];
const expanded: ExpandedV1[] = [];

const platforms: readonly Platform[] = ["ios", "android", "web"];
const deliveries = (lanes: readonly Lane[]): Handler[] =>
  lanes.flatMap((lane) =>
    platforms.map((platform) =>
      defineHandler({
        durable: `dispatch-${lane}-${platform}` as DurableName,
        message: DeliverBatchV1,
        handle: async ({ data }) => void batches.push(data),
      }),
    ),
  );
const finish = defineHandler({
  durable: "dispatch-finish",
  message: ExpandedV1,
  handle: async ({ data }) => void expanded.push(data),
});

let broadcast: Consuming;

beforeAll(async () => {
  registry = await startRegistryTest();
  broadcast = await registry.handle(...deliveries(["broadcast"]));
  await registry.handle(...deliveries(["direct"]), finish);
});
afterAll(() => registry.stop());
beforeEach(async () => {
  projectId = await registry.project();
});

const seed = async (devices: Iterable<SeedDevice>): Promise<DeviceId[]> => {
  const ids: DeviceId[] = [];
  for await (const some of seedDevices(registry.db, projectId, devices)) ids.push(...some);
  return ids;
};
const many = (count: number, topics: (at: number) => string[] = () => ["news"]): SeedDevice[] =>
  Array.from({ length: count }, (_, at) => ({
    token: `t${at}`,
    platform: platforms[at % 3] ?? "ios",
    topics: topics(at),
    identifiers: { current_locale: "de" },
  }));

const message = (targets: string[], rest: Partial<ExpandV1> = {}): ExpandV1 => ({
  projectId,
  notificationId: newNotificationId(new Date()),
  page: 0,
  fromBucket: 0,
  targets,
  lane: laneOf(targets),
  expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  ...rest,
});

let sent = 0;
const send = (data: ExpandV1) => publish(registry.bus, ExpandV1, data, { id: `test/${++sent}` });

/** What dispatch has of a notification when it is told that there is no more. */
const outcome = async (notificationId: NotificationId) => {
  const of = <Message extends { notificationId: string }>(list: readonly Message[]) =>
    list.filter((one) => one.notificationId === notificationId);
  return eventually(
    () => {
      const [end] = of(expanded);
      if (!end) throw new Error("not expanded");
      const own = of(batches);
      const ids = new Set(own.map(({ batchId }) => batchId));
      if (ids.size !== end.batches) throw new Error(`${ids.size} of ${end.batches} batches`);
      return { end, batches: own, devices: own.flatMap(({ devices }) => devices.map(({ id }) => id)) };
    },
    { timeoutMs: 20_000 },
  );
};
const expand = async (targets: string[]) => {
  const data = message(targets);
  await send(data);
  return outcome(data.notificationId);
};
const sorted = (ids: Iterable<string>) => [...ids].sort();
const setStatus = (ids: readonly DeviceId[], status: string) =>
  registry.db
    .collection<{ _id: string }>("devices")
    .updateMany({ _id: { $in: [...ids] } }, { $set: { status, updatedAt: new Date() } });

describe("an audience", () => {
  test("of one device is one batch on the direct lane, with all that a delivery needs", async () => {
    const keys = { p256dh: "p".repeat(87), auth: "a".repeat(22) };
    const [id] = await seed([
      {
        token: "https://push.example/1",
        platform: "web",
        keys,
        identifiers: { current_locale: "pt-BR" },
        metadata: { x: 1 },
      },
    ]);
    const { end, batches } = await expand([id ?? ""]);
    expect(end).toMatchObject({ batches: 1, devices: 1, unmatched: [] });
    const document = await registry.db.collection("devices").findOne({ projectId });
    expect(batches).toEqual([
      {
        batchId: `${end.notificationId}/0/0`,
        projectId,
        notificationId: end.notificationId,
        lane: "direct",
        platform: "web",
        devices: [
          { id, token: "https://push.example/1", tokenAt: document?.tokenUpdatedAt.getTime(), keys, locale: "pt-BR" },
        ],
      },
    ]);
  });

  test("of nobody ends at once, with every target unmatched", async () => {
    const targets = ["topic:none", newDeviceId(new Date()), "token:none", "metadata:a=b", "news"];
    const { end, batches } = await expand(targets);
    expect(end).toMatchObject({ batches: 0, devices: 0, unmatched: targets });
    expect(batches).toEqual([]);
  });

  test("of 10,000 devices in several targets is each of them once, in batches within the limits", async () => {
    const ids = await seed(many(10_000, (at) => (at % 3 === 0 ? ["news", "sport"] : at % 2 ? ["news"] : ["sport"])));
    const inactive = ids.slice(0, 50);
    await setStatus(inactive, "inactive");
    const direct = ids[100] ?? "";
    const { end, batches, devices } = await expand([
      "news",
      "topic:sport",
      direct,
      "token:t101",
      "identifiers:current_locale=de",
      "gone",
    ]);
    expect(sorted(devices)).toEqual(sorted(ids.slice(50)));
    expect(end).toMatchObject({ devices: 9_950, unmatched: ["gone"] });
    expect(new Set(batches.map(({ batchId }) => batchId.split("/")[1])).size, "pages").toBeGreaterThan(5);
    for (const batch of batches) {
      expect(batch.devices.length).toBeLessThanOrEqual(500);
      expect(batch.devices.map(({ id }) => id)).toEqual(sorted(batch.devices.map(({ id }) => id)));
      expect(batch.lane).toBe("broadcast");
    }
  });

  test("`all` is every active device of the project, and no other project's", async () => {
    const ids = await seed(many(4_000, () => []));
    const other = projectId;
    projectId = await registry.project();
    const own = await seed(many(30));
    const one = await expand(["all", "news", "none", `device:${ids[0]}`]);
    expect(sorted(one.devices)).toEqual(sorted(own));
    expect(one.end.unmatched).toEqual(["none", `device:${ids[0]}`]);
    projectId = other;
    expect(sorted((await expand(["all"])).devices)).toEqual(sorted(ids));
  });

  test("by values finds numbers as text, long values in the documents, and nothing inside of lists", async () => {
    const long = "x".repeat(300);
    const android = (token: string, metadata: object): SeedDevice => ({
      token,
      platform: "android",
      metadata: { ...metadata },
    });
    const [one, text, large, list, deep] = await seed([
      android("a", { n: 1 }),
      android("b", { n: "1" }),
      android("c", { bio: long }),
      android("d", { bio: [long] }),
      android("e", { deep: { bio: long } }),
    ]);
    expect(sorted((await expand(["metadata:n=1"])).devices)).toEqual(sorted([one ?? "", text ?? ""]));
    expect((await expand([`metadata:bio=${long}`])).devices).toEqual([large]);
    const both = await expand([`metadata:deep.bio=${long}`, "metadata:n=2", `metadata:$where=${long}`]);
    expect(both.devices).toEqual([deep]);
    expect(both.end.unmatched).toEqual(["metadata:n=2", `metadata:$where=${long}`]);
    expect(list).toBeDefined();
  });

  test("by token is that token on every platform", async () => {
    const ids = await seed([
      { token: "same", platform: "ios" },
      { token: "same", platform: "android" },
      { token: "other", platform: "ios" },
    ]);
    const { devices, end } = await expand(["token:same"]);
    expect(sorted(devices)).toEqual(sorted(ids.slice(0, 2)));
    expect(end).toMatchObject({ batches: 2, unmatched: [] });
  });

  test("of a thousand topics is read in a few questions", async () => {
    const ids = await seed(many(200, (at) => [`t${at}`, `u${at}`]));
    const targets = Array.from({ length: 1_000 }, (_, at) => `t${at}`);
    const { devices, end } = await expand(targets);
    expect(sorted(devices)).toEqual(sorted(ids));
    expect(end.unmatched).toEqual(targets.slice(200));
  });

  test("that is not understood is a dead letter", async () => {
    const data = message(["condition:x"]);
    const dead: unknown[] = [];
    const bury = defineHandler({
      durable: "dispatch-bury",
      message: { ...ExpandV1, filter: "push.dlq.v1.>" },
      handle: async ({ data }) => void dead.push(data),
    });
    const burying = await registry.handle(bury);
    await send(data);
    await eventually(() => expect(dead).toMatchObject([{ notificationId: data.notificationId }]));
    await burying.stop(1_000);
  });
});

describe("a page that is dealt again", () => {
  const stores = () => ({
    audience: createAudienceStore(registry.db),
    expansions: createExpansionStore(registry.db),
    now: () => new Date(),
  });

  test("after a crash before anything was published: each device once", async () => {
    const ids = await seed(many(4_000));
    const data = message(["news"]);
    await dealPage(stores(), data);
    await send(data);
    expect(sorted((await outcome(data.notificationId)).devices)).toEqual(sorted(ids));
  });

  test("after a crash when part was published: nobody is in two batches, and who came later is in none that is final", async () => {
    const ids = await seed(many(4_000));
    const data = message(["news"]);
    const first = await dealPage(stores(), data);
    const published = first.batches[1];
    if (!published) throw new Error("no second batch");
    const batchId = `${data.notificationId}/0/1`;
    const { platform, devices } = published;
    const { notificationId, lane } = data;
    const batch = { batchId, projectId, notificationId, lane, platform, devices: [...devices] };
    await publish(registry.bus, DeliverBatchV1, batch, { id: batchId });

    const dealt = first.batches.flatMap((each) => each.devices.map(({ id }) => id));
    const gone = dealt.filter((_, at) => at % 7 === 0);
    await setStatus(gone, "inactive");
    const late = await seed(many(3_000).map((device) => ({ ...device, token: `late ${device.token}` })));
    await send(data);

    const result = await outcome(notificationId);
    expect(new Set(result.devices).size).toBe(result.devices.length);
    const firstPage = result.batches.filter(({ batchId }) => batchId.startsWith(`${notificationId}/0/`));
    const place = new Map(first.batches.flatMap((each, n) => each.devices.map(({ id }) => [id as string, n] as const)));
    for (const each of firstPage)
      for (const { id } of each.devices)
        if (place.has(id)) expect(`${notificationId}/0/${place.get(id)}`).toBe(each.batchId);
    const got = new Set<string>(result.devices);
    for (const id of ids) if (!gone.includes(id)) expect(got.has(id)).toBe(true);
    expect(late.filter((id) => got.has(id)).length, "the pages after the crash have them").toBeGreaterThan(1_000);
    const again = firstPage.find((each) => each.batchId === batchId);
    expect(again?.devices).toEqual(devices);
  });

  test("has the borders of its first deal though the audience grew a hundredfold", async () => {
    await seed(many(40));
    const data = message(["news"]);
    const first = await dealPage(stores(), data);
    expect(first.range).toEqual({ from: 0, to: 4_095 });
    await seed(many(4_000).map((device) => ({ ...device, token: `late ${device.token}` })));
    const second = await dealPage(stores(), data);
    expect(second.range).toEqual(first.range);
    expect(second.batches).toHaveLength(3);
    for (const { devices } of second.batches) expect(devices.length).toBeLessThanOrEqual(500);
    const members = new Set(second.batches.flatMap(({ devices }) => devices.map(({ id }) => id)));
    for (const { devices } of first.batches) for (const { id } of devices) expect(members.has(id)).toBe(true);
    expect(second.deal).toMatchObject({ devices: 40, batches: first.deal.batches });
  });

  test("twice at the same time, from the first to the last", async () => {
    const ids = await seed(many(5_000));
    const data = message(["news"]);
    await Promise.all([send(data), send(data), send(data)]);
    const { end, devices } = await outcome(data.notificationId);
    expect(sorted(devices)).toEqual(sorted(ids));
    expect(end.devices).toBe(5_000);
    const pages = await registry.db
      .collection<{ _id: string; fromBucket: number; toBucket: number }>("expansions")
      .find({ projectId })
      .toArray();
    expect(pages.length).toBeGreaterThan(2);
    for (const { _id, fromBucket, toBucket } of pages)
      await send({ ...data, page: Number(_id.split("/")[1]), fromBucket, toBucket });
    await eventually(() => {
      const ends = expanded.filter(({ notificationId }) => notificationId === data.notificationId);
      for (const one of ends) expect(one).toEqual(end);
    });
    const after = batches.filter(({ notificationId }) => notificationId === data.notificationId);
    const unique = new Map(after.map((batch) => [batch.batchId, batch]));
    expect(sorted([...unique.values()].flatMap(({ devices }) => devices.map(({ id }) => id)))).toEqual(sorted(ids));
  });

  test("a device stays in its page: the page is its bucket's", async () => {
    const ids = await seed(many(4_000));
    const { batches } = await expand(["news"]);
    const pages = new Map<string, number[]>();
    for (const { batchId, devices } of batches) {
      const page = batchId.split("/")[1] ?? "";
      pages.set(page, [...(pages.get(page) ?? []), ...devices.map(({ id }) => deviceBucket(id))]);
    }
    const ranges = [...pages.values()].map((buckets) => [Math.min(...buckets), Math.max(...buckets)] as const);
    ranges.sort(([one], [other]) => one - other);
    for (const [at, [from]] of ranges.entries()) if (at > 0) expect(from).toBeGreaterThan(ranges[at - 1]?.[1] ?? -1);
    expect(ids).toHaveLength(4_000);
  });
});

describe("a full queue", () => {
  test("is waited for, while another project and the direct lane go on; then nothing is missing", async () => {
    const full = projectId;
    const ids = await seed(many(5_000).map((device) => ({ ...device, platform: "android" as const })));
    await broadcast.stop(2_000);
    const waiting = Array.from({ length: 6 }, () => message(["news"]));
    for (const data of waiting) await send(data);
    await eventually(async () => {
      const pages = await registry.db.collection("expansions").countDocuments({ projectId: full });
      expect(pages).toBeGreaterThan(1);
    });

    const direct = await expand([ids[0] ?? ""]);
    expect(direct.devices).toEqual([ids[0]]);
    projectId = await registry.project();
    const [other] = await seed([{ token: "o", platform: "ios", topics: ["news"] }]);
    const { devices } = await expand([other ?? ""]);
    expect(devices).toEqual([other]);

    projectId = full;
    broadcast = await registry.handle(...deliveries(["broadcast"]));
    for (const data of waiting) {
      const { devices } = await outcome(data.notificationId);
      expect(sorted(devices)).toEqual(sorted(ids));
    }
  });
});
