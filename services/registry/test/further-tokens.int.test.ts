import {
  audienceRequests,
  type DeviceId,
  DeviceUpdatedV1,
  deviceRequests,
  maxFurtherTokens,
  type ProjectId,
  pushTokenHash,
  topicRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry();
let projectId: ProjectId;
let device: DeviceId;
let other: DeviceId;

const register = async (name: string, more: object = {}) =>
  (await registry.register(projectId, apnsToken(`${projectId}/${name}`), more)).device.id;
const tokenOf = (name: string) => apnsToken(`${projectId}/token/${name}`);

beforeEach(async () => {
  projectId = await registry.project();
  [device, other] = [
    await register("one", { topics: ["news"], userId: "u_1" }),
    await register("two", { topics: ["news"] }),
  ];
});

const put = (deviceId: DeviceId, push: string, name = push, more: object = {}) =>
  registry.ask(deviceRequests.putToken, { projectId, deviceId, push, token: tokenOf(name), ...more });
const remove = (deviceId: DeviceId, push: string) =>
  registry.ask(deviceRequests.deleteToken, { projectId, deviceId, push });
const change = (deviceId: DeviceId, change: object) =>
  registry.ask(deviceRequests.change, { projectId, deviceId, change });
const tokensOf = async (deviceId: DeviceId) =>
  ((await registry.ask(deviceRequests.get, { projectId, deviceId })).tokens ?? []).map(({ type, name, token }) => ({
    ...{ type, token },
    ...(name !== undefined && { name }),
  }));
const stored = (deviceId: DeviceId) =>
  registry.db.collection<{ _id: string; facets: string[]; version: number }>("devices").findOne({ _id: deviceId });

describe("a token of a push type", () => {
  test("is stored, replaced and deleted, each with an event", async () => {
    await put(device, "voip");
    await put(device, "controls/gate", "gate", { environment: "sandbox" });
    expect(await tokensOf(device)).toEqual([
      { type: "voip", token: tokenOf("voip") },
      { type: "controls", name: "gate", token: tokenOf("gate") },
    ]);
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceUpdatedV1)).toMatchObject({
        device_id: device,
        changed: ["tokens"],
      }),
    );
    await put(device, "voip", "newer");
    expect(await tokensOf(device)).toContainEqual({ type: "voip", token: tokenOf("newer") });
    await remove(device, "voip");
    await remove(device, "voip");
    expect(await tokensOf(device)).toEqual([{ type: "controls", name: "gate", token: tokenOf("gate") }]);
    await remove(device, "controls/gate");
    expect(await stored(device)).not.toHaveProperty("tokens");
    expect((await stored(device))?.facets.filter((facet) => facet.startsWith("p:"))).toEqual([]);
  });

  test("stays when the device changes, and goes with the device", async () => {
    await put(device, "voip");
    await change(device, { metadata: { plan: "pro" } });
    await registry.register(projectId, apnsToken(`${projectId}/one`), { metadata: { n: 1 } });
    expect((await stored(device))?.facets).toContain("p:voip");
    expect(await tokensOf(device)).toHaveLength(1);
    await registry.ask(deviceRequests.delete, { projectId, deviceId: device });
    expect(await stored(device)).not.toHaveProperty("tokens");
    await put(other, "voip");
  });

  test("is not written again within a minute", async () => {
    await put(device, "voip");
    const before = await stored(device);
    await put(device, "voip");
    expect((await stored(device))?.version).toBe(before?.version);
    const channelsAfter = async (more: object) => {
      await put(device, "liveactivity/Match", "match", more);
      const { tokens = [] } = await registry.ask(deviceRequests.get, { projectId, deviceId: device });
      const token = tokens.find(({ type }) => type === "liveactivity");
      return [token?.channels, (await stored(device))?.version];
    };
    const [, version = 0] = await channelsAfter({});
    expect(await channelsAfter({ channels: false })).toEqual([undefined, version]);
    expect(await channelsAfter({ channels: true })).toEqual([true, Number(version) + 1]);
    expect(await channelsAfter({ channels: true })).toEqual([true, Number(version) + 1]);
    expect(await channelsAfter({ channels: false })).toEqual([undefined, Number(version) + 2]);
  });

  test("of an activity asks for its state until that is on its way, however late", async () => {
    const key = "activity/order";
    const note = (name: string) =>
      registry.ask(deviceRequests.noteState, {
        projectId,
        deviceId: device,
        push: key,
        tokenHash: pushTokenHash(tokenOf(name)),
      });
    const later = () =>
      registry.db
        .collection<{ _id: string }>("devices")
        .updateOne({ _id: device }, { $set: { "tokens.0.at": new Date(Date.now() - 61_000) } });
    const asks = { cameAt: expect.any(String) };
    expect(await put(device, key, "one")).toEqual(asks);
    expect(await put(device, key, "one")).toEqual(asks);
    await later();
    expect(await put(device, key, "one")).toEqual(asks);
    // It has been replaced meanwhile.
    await note("another");
    expect(await put(device, key, "one")).toEqual(asks);
    await note("one");
    expect(await put(device, key, "one")).toEqual({});
    await later();
    expect(await put(device, key, "one")).toEqual({});
    expect(await put(device, key, "two")).toEqual(asks);
    expect(await put(device, "voip")).toEqual({});
  });

  test("moves to another type of the same device", async () => {
    await put(device, "voip", "same");
    await put(device, "pushtotalk", "same");
    expect(await tokensOf(device)).toEqual([{ type: "pushtotalk", token: tokenOf("same") }]);
  });

  test("of another active device, or of another user's, is in use", async () => {
    await put(device, "voip");
    expect(await failure(put(other, "voip"))).toMatchObject({ code: "token-in-use" });
    await change(device, { status: "inactive" });
    expect(await failure(put(other, "voip"))).toMatchObject({ code: "token-in-use" });
    await change(other, { user_id: "u_1" });
    await put(other, "voip");
    expect([await tokensOf(device), await tokensOf(other)]).toEqual([[], [{ type: "voip", token: tokenOf("voip") }]]);
  });

  test("has one holder, however many devices claim it at once", async () => {
    const devices = await Promise.all(Array.from({ length: 8 }, (_, at) => register(`racer-${at}`)));
    const results = await Promise.allSettled(devices.map((id) => put(id, "voip", "raced")));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const holders = await registry.db
      .collection("devices")
      .countDocuments({ "tokens.hash": pushTokenHash(tokenOf("raced")) });
    expect(holders).toBe(1);
  });

  test("is one of 32, for iOS alone", async () => {
    for (let at = 0; at < maxFurtherTokens; at++) await put(device, `controls/c${at}`);
    expect(await failure(put(device, "voip"))).toMatchObject({
      code: "validation-failed",
      messages: ["token: the device already has 32 tokens of push types, the maximum; delete one"],
    });
    await put(device, "controls/c0", "again");
    const android = (await registry.register(projectId, "fcm", { platform: "android" })).device.id;
    expect(await failure(put(android, "voip"))).toMatchObject({ code: "validation-failed" });
  });

  test("takes no place of topics and values", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 62 }, (_, at) => [`k${at}`, at]));
    await change(device, { metadata, identifiers: { current_locale: "es-MX", current_time_zone: "America/Lima" } });
    for (let at = 0; at < 5; at++) await put(device, `controls/c${at}`);
    const subscribe = (topic: string) =>
      registry.ask(topicRequests.subscribe, { projectId, topic, devices: [device], create: true });
    expect(await subscribe("last")).toMatchObject({ full: [] });
    expect(await subscribe("too-much")).toMatchObject({ full: [device] });
    await put(device, "voip");
  });
});

describe("a send with a push type", () => {
  beforeEach(async () => {
    await put(device, "voip", "voip", { environment: "sandbox" });
  });

  const resolve = async (targets: string[], push?: string) => {
    const { sends } = await registry.ask(audienceRequests.resolve, {
      projectId,
      sends: [{ targets }, { targets, push }],
      limit: 100,
    });
    return sends[1]?.batches;
  };

  test("reaches devices with its token, which is the recipient's", async () => {
    expect(await resolve(["user:u_1"], "voip")).toEqual([
      {
        platform: "ios",
        devices: [
          {
            ...{ id: device, token: tokenOf("voip"), tokenAt: expect.any(Number), environment: "sandbox" },
            userId: "u_1",
          },
        ],
      },
    ]);
    expect(await resolve([device, other], "voip")).toMatchObject([{ devices: [{ id: device }] }]);
    expect(await resolve([device, other], "widgets")).toEqual([]);
    expect(await resolve([device, other], "controls/voip")).toEqual([]);
  });

  test("reaches by APNs a device that FCM serves otherwise", async () => {
    const { id } = (await registry.register(projectId, "fcm-token", { provider: "fcm", tokenKind: "token" })).device;
    await put(id, "voip", "of-flutter");
    expect(await resolve([id], "voip")).toEqual([
      { platform: "ios", devices: [{ id, token: tokenOf("of-flutter"), tokenAt: expect.any(Number) }] },
    ]);
  });

  test.each([["topic:news"], ["all"], ["condition:platform == 'ios'"]])(
    "to %s counts the devices with its token",
    async (target) => {
      const wanted = { projectId, targets: [target], push: "voip" };
      expect((await registry.ask(audienceRequests.count, wanted)).devices).toEqual({ ios: 1, android: 0, web: 0 });
      await change(device, { status: "inactive" });
      expect((await registry.ask(audienceRequests.count, wanted)).devices).toEqual({ ios: 0, android: 0, web: 0 });
    },
  );

  test("says whether a start may name a channel", async () => {
    const push = "liveactivity/Match";
    const found = async () =>
      (await resolve(["user:u_1"], push))?.flatMap(({ devices }) => devices.map((one) => one.channels));
    await put(device, push, push, { channels: true });
    expect(await found()).toEqual([true]);
    await put(device, push);
    expect(await found()).toEqual([undefined]);
  });

  test("explains why it does not reach a device", async () => {
    const explain = (deviceId: DeviceId) =>
      registry.ask(audienceRequests.explain, { projectId, deviceId, targets: ["topic:news"], push: "voip" });
    expect(await explain(other)).toMatchObject({ matched: "topic:news", noToken: true });
    expect(await explain(device)).not.toHaveProperty("noToken");
  });
});
