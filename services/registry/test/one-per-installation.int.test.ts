import { audienceRequests, deviceRequests, type ProjectId } from "@herald/contracts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { type ExpandTest, sorted, startExpandTest } from "./expand-fixture.ts";
import { apnsToken } from "./registry-fixture.ts";

let world: ExpandTest;
let projectId: ProjectId;
beforeAll(async () => {
  world = await startExpandTest();
});
afterAll(() => world.registry.stop());
beforeEach(async () => {
  projectId = await world.newProject();
});

let phones = 0;
/** One phone that an app has registered twice: with APNs and with FCM. */
const registerTwice = async (rest: { topics?: string[]; userId?: string } = {}, fcmOnly: object = {}) => {
  const installationId = `phone-${++phones}`;
  const { device: own } = await world.registry.register(projectId, apnsToken(installationId), {
    installationId,
    topics: ["news"],
    ...rest,
  });
  const { device: fcm } = await world.registry.register(projectId, `fcm-token-of-${phones}`, {
    provider: "fcm",
    installationId,
    topics: ["news"],
    ...rest,
    ...fcmOnly,
  });
  return { own, fcm, installationId };
};

test("the provider is part of a device's key: one token registers once with each", async () => {
  const token = apnsToken("shared");
  const { device: own } = await world.registry.register(projectId, token);
  const { device: fcm } = await world.registry.register(projectId, token, { provider: "fcm" });
  expect(own).toMatchObject({ platform: "ios", provider: "apns" });
  expect(fcm).toMatchObject({ platform: "ios", provider: "fcm" });
  expect(fcm.id).not.toBe(own.id);
  const again = await world.registry.register(projectId, token, { provider: "fcm" });
  expect(again).toMatchObject({ created: false, device: { id: fcm.id } });
  // Naming the platform's own provider is the same as naming none.
  const named = await world.registry.register(projectId, token, { provider: "apns" });
  expect(named).toMatchObject({ created: false, device: { id: own.id } });
});

test("a broadcast partitions devices by provider too, in the queue of the provider", async () => {
  const { own, fcm } = await registerTwice({}, { installationId: "another" });
  const { device: android } = await world.registry.register(projectId, "android-token", {
    platform: "android",
    topics: ["news"],
  });
  const { batches } = await world.expand(["topic:news"]);
  const of = (id: string) => batches.find(({ devices }) => devices.some((device) => device.id === id));
  expect(of(own.id)).toMatchObject({ platform: "ios" });
  expect(of(own.id)).not.toHaveProperty("provider");
  expect(of(fcm.id)).toMatchObject({ platform: "ios", provider: "fcm" });
  expect(of(android.id)).toMatchObject({ platform: "android" });
  expect(batches).toHaveLength(3);
});

test("of two devices of one installation the platform's own provider wins, in broadcasts, small sends and counts", async () => {
  const { own, fcm } = await registerTwice({ userId: "u1" });
  const single = (await world.registry.register(projectId, "alone", { provider: "fcm", topics: ["news"] })).device;
  expect(sorted((await world.expand(["topic:news"])).devices)).toEqual(sorted([own.id, single.id]));
  const { sends } = await world.registry.ask(audienceRequests.resolve, {
    projectId,
    sends: [{ targets: ["user:u1"] }, { targets: [fcm.id] }],
    limit: 100,
  });
  const ids = sends.map((send) => send?.batches.flatMap(({ devices }) => devices.map(({ id }) => id)));
  // Only the FCM device is named, so nothing else reaches the phone.
  expect(ids).toEqual([[own.id], [fcm.id]]);
  expect(await world.registry.ask(audienceRequests.count, { projectId, targets: ["topic:news"] })).toEqual({
    devices: { ios: 2, android: 0, web: 0 },
    unmatched: [],
  });
  const explained = await world.registry.ask(audienceRequests.explain, {
    projectId,
    deviceId: fcm.id,
    targets: ["topic:news"],
  });
  expect(explained).toMatchObject({ matched: "topic:news", reachedThrough: own.id });
});

test("the FCM device gets it when the other one is inactive, of another user, or not in the audience", async () => {
  const inactive = await registerTwice();
  await world.setStatus([inactive.own.id], "inactive");
  const otherUser = await registerTwice({}, { userId: "u2" });
  const absent = await registerTwice({ topics: [] }, { topics: ["news"] });
  const { devices } = await world.expand(["topic:news"]);
  expect(sorted(devices)).toEqual(sorted([inactive.fcm.id, otherUser.own.id, otherUser.fcm.id, absent.fcm.id]));
});

/** What an app does without a credential: it names any token and any installation. */
const identify = (token: string, rest: { provider?: "fcm"; installationId: string; metadata?: { plan: string } }) =>
  world.registry.ask(deviceRequests.identify, { projectId, platform: "ios", token, ...rest });

test("a device without proof takes no other device's pushes, nor does it end the backend's word", async () => {
  const { fcm, installationId } = await registerTwice({ topics: [] }, { topics: ["news"] });
  const stranger = await identify(apnsToken("stranger"), { installationId, metadata: { plan: "pro" } });
  const send = ["topic:news", "metadata:plan=pro"];
  expect(sorted((await world.expand(send)).devices)).toEqual(sorted([fcm.id, stranger.device.id]));
  const victim = await identify("fcm-token-of-a-victim", {
    provider: "fcm",
    installationId: "claimed",
    metadata: { plan: "pro" },
  });
  await identify(apnsToken("thief"), { installationId: "claimed", metadata: { plan: "pro" } });
  expect((await world.expand(["metadata:plan=pro"])).devices).toContain(victim.device.id);
  // The phone itself names the same installation again on each start.
  const { own, fcm: second, installationId: named } = await registerTwice();
  await identify(`fcm-token-of-${phones}`, { provider: "fcm", installationId: named });
  const { devices } = await world.expand(["topic:news"]);
  expect(devices).toContain(own.id);
  expect(devices).not.toContain(second.id);
});

test("an installation may have eight active devices of a user; an installation that has more is ignored", async () => {
  const nth = (n: number) =>
    world.registry.register(projectId, apnsToken(`many-${n}`), { installationId: "many", topics: ["news"] });
  for (let n = 0; n < 8; n++) await nth(n);
  await expect(nth(8)).rejects.toThrow(/installation_id: 8 active devices/);
  const { device: fcm } = await world.registry.register(projectId, "fcm-of-many", {
    ...{ provider: "fcm" as const, installationId: "other", topics: ["news"] },
  });
  // As many requests of the same moment as would exceed the limit together.
  const moved = await Promise.allSettled(
    ["a", "b"].map((name) =>
      world.registry.register(projectId, apnsToken(name), { installationId: "many", userId: "ann" }),
    ),
  );
  expect(moved.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  const change = { installation_id: "many" };
  await expect(world.registry.ask(deviceRequests.change, { projectId, deviceId: fcm.id, change })).rejects.toThrow(
    /installation_id: 8 active devices/,
  );
  const { device: ninth } = await world.registry.register(projectId, apnsToken("ninth"), { topics: ["news"] });
  const collection = world.registry.db.collection<{ _id: string; installationKey?: string }>("devices");
  const join = (id: string) => collection.updateOne({ _id: id }, { $set: { installationKey: '["ios",null,"many"]' } });
  await join(fcm.id);
  expect((await world.expand(["topic:news"])).devices).not.toContain(fcm.id);
  await join(ninth.id);
  expect((await world.expand(["topic:news"])).devices).toContain(fcm.id);
});

test("what devices of an installation have stored is not read, unless the targets need it", async () => {
  const { own, fcm, installationId } = await registerTwice({ userId: "u1" });
  const metadata = { note: "x".repeat(9_000), plan: "pro" };
  for (const device of [own, fcm])
    await world.registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change: { metadata } });
  const rows: object[] = [];
  const take = async (part: readonly object[]) => void rows.push(...part);
  const key = JSON.stringify(["ios", "u1", installationId]);
  const audience = createAudienceStore(world.registry.db);
  await audience.ofInstallations(projectId, [key], { paths: ["metadata.plan"], facets: ["t:news"] }, take);
  expect(rows).toEqual([
    {
      ...{ _id: own.id, platform: "ios", token: own.token, installationKey: key },
      ...{ metadata: { plan: "pro" }, facets: ["t:news"] },
    },
  ]);
});

test("an installation id is shown, changed and removed like other fields", async () => {
  const { own, fcm, installationId } = await registerTwice();
  expect(own).toMatchObject({ installation_id: installationId });
  const change = (installation: string | null) =>
    world.registry.ask(deviceRequests.change, {
      projectId,
      deviceId: fcm.id,
      change: { installation_id: installation },
    });
  expect(await change("elsewhere")).toMatchObject({ installation_id: "elsewhere" });
  expect(sorted((await world.expand(["topic:news"])).devices)).toEqual(sorted([own.id, fcm.id]));
  expect(await change(null)).not.toHaveProperty("installation_id");
  const { data } = await world.registry.ask(deviceRequests.list, {
    projectId,
    page: { by: "page", page: 1, perPage: 10 },
  });
  expect(data.find(({ id }) => id === fcm.id)).not.toHaveProperty("installation_id");
});
