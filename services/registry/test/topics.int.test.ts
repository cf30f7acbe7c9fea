import {
  type DeviceId,
  DeviceSubscribedV1,
  DeviceUnsubscribedV1,
  deviceRequests,
  type ListRequest,
  newDeviceId,
  newTopicId,
  type ProjectId,
  TopicCreatedV1,
  TopicDeletedV1,
  topicRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
  overrides: { removeEveryMs: 50 },
});

const create = (name: string, topicId = newTopicId(new Date())) =>
  registry.ask(topicRequests.create, { projectId, topicId, name });
const get = (topic: string) => registry.ask(topicRequests.get, { projectId, topic });
const devicesOf = async (count: number): Promise<DeviceId[]> => {
  const ids: DeviceId[] = [];
  const seeds = Array.from({ length: count }, (_, at) => ({ token: `t${at}`, platform: "android" as const }));
  for await (const some of seedDevices(registry.db, projectId, seeds)) ids.push(...some);
  return ids;
};
const subscribe = (topic: string, devices: DeviceId[], create = true) =>
  registry.ask(topicRequests.subscribe, { projectId, topic, devices, create });
const unsubscribe = (topic: string, devices: DeviceId[]) =>
  registry.ask(topicRequests.unsubscribe, { projectId, topic, devices, create: false });

describe("a topic", () => {
  test("is created once, read by id and by name, and published", async () => {
    const { topic, created } = await create("news");
    expect(created).toBe(true);
    expect(topic).toMatchObject({ name: "news", devices: 0 });
    expect(await create("news", topic.id)).toEqual({ topic, created: false });
    expect(await get("news")).toEqual(topic);
    expect(await get(topic.id)).toEqual(topic);
    expect(await failure(create("news"))).toMatchObject({ code: "topic-exists" });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, TopicCreatedV1)).toMatchObject({ topic_id: topic.id, topic: "news" }),
    );
  });

  test("is not found in another project", async () => {
    const { topic } = await create("news");
    const stranger = await registry.project();
    for (const reference of ["news", topic.id])
      expect(await failure(registry.ask(topicRequests.get, { projectId: stranger, topic: reference }))).toMatchObject({
        code: "topic-not-found",
      });
  });

  test("is listed with the count of its devices", async () => {
    const ids = await devicesOf(3);
    for (const name of ["a", "b", "c"]) await create(name);
    await subscribe("b", ids);
    const page = { by: "page" as const, page: 1, perPage: 2 };
    expect(await registry.ask(topicRequests.list, { projectId, page })).toMatchObject({
      data: [
        { name: "a", devices: 0 },
        { name: "b", devices: 3 },
      ],
      pagination: { count: 3, pages: 2 },
    });
  });

  test("is found by a prefix of its name, in pages sorted by name", async () => {
    for (const name of ["new", "news.de", "ne", "news", "news~", "newt", "News", "other"]) await create(name);
    const removed = await create("newsletter");
    await registry.ask(topicRequests.delete, { projectId, topic: removed.topic.id });
    const stranger = await registry.project();
    await registry.ask(topicRequests.create, { projectId: stranger, topicId: newTopicId(new Date()), name: "news-2" });
    const list = (page: ListRequest) => registry.ask(topicRequests.list, { projectId, prefix: "news", page });
    const numbered = await list({ by: "page", page: 1, perPage: 2 });
    expect(numbered).toMatchObject({
      data: [{ name: "news" }, { name: "news.de" }],
      pagination: { count: 3, pages: 2 },
    });
    const first = await list({ by: "key", after: "", perPage: 2 });
    expect(first.data.map(({ name }) => name)).toEqual(["news", "news.de"]);
    const after = "next" in first ? (first.next ?? "") : "";
    expect(await list({ by: "key", after, perPage: 2 })).toMatchObject({ data: [{ name: "news~" }], next: null });
  });
});

describe("subscriptions", () => {
  test("of a thousand devices at once, repeated, with unknown devices", async () => {
    const ids = await devicesOf(998);
    const stranger = await registry.project();
    const foreign = (await registry.register(stranger, apnsToken("x"))).device.id;
    const unknown = [newDeviceId(new Date()), foreign];
    const first = await subscribe("news", [...ids, ...unknown]);
    expect(first).toMatchObject({ topic: { name: "news" }, changed: 998, unknown });
    expect(await subscribe("news", [...ids, ...unknown])).toEqual({ ...first, changed: 0 });
    expect(await get("news")).toMatchObject({ devices: 998 });
    expect((await registry.ask(deviceRequests.get, { projectId: stranger, deviceId: foreign })).topics).toEqual([]);
    await eventually(async () => {
      expect(await registry.lastEvent(projectId, DeviceSubscribedV1)).toMatchObject({ topic: "news" });
      expect(await registry.db.collection("devices").countDocuments({ projectId, outbox: { $exists: true } })).toBe(0);
    });

    expect(await unsubscribe("news", [...ids.slice(8), ...unknown])).toMatchObject({ changed: 990, unknown });
    expect(await unsubscribe("news", ids.slice(8))).toMatchObject({ changed: 0 });
    expect(await get("news")).toMatchObject({ devices: 8 });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceUnsubscribedV1)).toMatchObject({ topic: "news" }),
    );
  });

  test("a device named twice counts once", async () => {
    const [id] = await devicesOf(1);
    if (!id) throw new Error("no device");
    expect(await subscribe("news", [id, id])).toMatchObject({ changed: 1, unknown: [] });
    expect((await registry.ask(deviceRequests.get, { projectId, deviceId: id })).topics).toEqual(["news"]);
  });

  test("without the right to create topics need an existing one", async () => {
    const ids = await devicesOf(1);
    const none = { code: "topic-not-found" };
    expect(await failure(subscribe("news", ids, false))).toMatchObject(none);
    expect(await failure(subscribe(newTopicId(new Date()), ids))).toMatchObject(none);
    expect(await failure(unsubscribe("news", ids))).toMatchObject(none);
    expect(await failure(get("news"))).toMatchObject(none);
    await create("news");
    expect(await subscribe("news", ids, false)).toMatchObject({ changed: 1 });
  });

  test("of unknown devices alone make no topic", async () => {
    expect(await failure(subscribe("news", [newDeviceId(new Date())]))).toMatchObject({ code: "device-not-found" });
    expect(await failure(get("news"))).toMatchObject({ code: "topic-not-found" });
  });

  test("at the same time as changes lose nothing", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const names = Array.from({ length: 20 }, (_, at) => `topic${at}`);
    await Promise.all([
      ...names.map((name) => subscribe(name, [device.id])),
      ...names.map((name) => registry.register(projectId, apnsToken("a"), { metadata: { [name]: name } })),
    ]);
    const after = await registry.ask(deviceRequests.get, { projectId, deviceId: device.id });
    expect([...after.topics].sort()).toEqual([...names].sort());
    expect(Object.keys(after.metadata).sort()).toEqual([...names].sort());
  });

  test("that name a new topic at the same time create it once", async () => {
    const ids = await devicesOf(20);
    const results = await Promise.all(ids.map((id) => subscribe("news", [id])));
    expect(new Set(results.map(({ topic }) => topic.id)).size).toBe(1);
    expect(await get("news")).toMatchObject({ devices: 20 });
  });
});

describe("deletion of a topic", () => {
  test("ends every subscription, and frees the name", async () => {
    // More than one command ends.
    const seeds = Array.from({ length: 1_100 }, (_, at) => ({
      token: `t${at}`,
      platform: "android" as const,
      topics: ["news", "sport"],
    }));
    const ids: DeviceId[] = [];
    for await (const some of seedDevices(registry.db, projectId, seeds)) ids.push(...some);
    const { id } = await get("news");
    expect(await registry.ask(topicRequests.delete, { projectId, topic: "news" })).toEqual({});
    for (const reference of ["news", id])
      expect(await failure(get(reference))).toMatchObject({ code: "topic-not-found" });
    expect(await failure(registry.ask(topicRequests.delete, { projectId, topic: id }))).toMatchObject({
      code: "topic-not-found",
    });
    // A deletion that takes longer than a reply continues in the background.
    await eventually(async () =>
      expect(await registry.db.collection("devices").countDocuments({ projectId, facets: "t:news" })).toBe(0),
    );
    expect(await get("sport")).toMatchObject({ devices: 1_100 });

    const again = await eventually(() => create("news"));
    expect(again.created).toBe(true);
    expect(again.topic).toMatchObject({ devices: 0 });
    expect(again.topic.id).not.toBe(id);
    await eventually(async () => {
      expect(await registry.lastEvent(projectId, TopicDeletedV1)).toMatchObject({ topic_id: id, topic: "news" });
      expect(await registry.db.collection<{ _id: string }>("topics").findOne({ _id: id })).toBeNull();
    });
  });

  test("continues after a crash; until then the name is taken", async () => {
    const { topic } = await create("news");
    const ids = await devicesOf(3);
    await subscribe("news", ids);
    const deletedAt = new Date();
    const busy = registry.db.collection("devices");
    await registry.db.collection<{ _id: string }>("topics").updateOne({ _id: topic.id }, { $set: { deletedAt } });
    await eventually(async () => {
      expect(await busy.countDocuments({ projectId, facets: "t:news" })).toBe(0);
      expect(await registry.db.collection<{ _id: string }>("topics").findOne({ _id: topic.id })).toBeNull();
    });
    expect((await create("news")).created).toBe(true);
  });

  test("while devices subscribe leaves no subscription without a topic", async () => {
    const ids = await devicesOf(30);
    await create("news");
    await Promise.allSettled([
      ...ids.map((id, at) => subscribe("news", [id], at % 2 === 0)),
      registry.ask(topicRequests.delete, { projectId, topic: "news" }),
    ]);
    // A deletion that takes longer than a reply continues in the background.
    await eventually(async () => {
      const left = await registry.db.collection("devices").countDocuments({ projectId, facets: "t:news" });
      const topic = await get("news").catch(() => undefined);
      expect(topic?.devices ?? 0).toBe(left);
    });
  });
});
