import {
  DeviceDeactivatedV1,
  DeviceDeletedV1,
  DeviceRegisteredV1,
  DeviceSubscribedV1,
  DeviceUpdatedV1,
  deviceRequests,
  newDeviceId,
  newProjectId,
  type ProjectId,
  parseDeviceCredential,
  pushTokenHash,
  secretHash,
  TopicCreatedV1,
  topicRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { apnsToken, failure, patient, patientMs, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
});

const stored = (id: string) => registry.db.collection<{ _id: string }>("devices").findOne({ _id: id });
const token = apnsToken("one");

describe("registration", () => {
  test("of a new device returns it with a credential, and publishes an event", async () => {
    const { device, credential, created } = await registry.register(projectId, token, {
      metadata: { plan: "pro", nested: { a: [1, null] } },
      identifiers: { current_locale: "de" },
      topics: ["news"],
      environment: "sandbox",
    });
    expect(created).toBe(true);
    expect(device).toMatchObject({
      token,
      platform: "ios",
      metadata: { plan: "pro", nested: { a: [1, null] } },
      identifiers: { current_locale: "de" },
      status: "active",
      topics: ["news"],
      environment: "sandbox",
    });
    expect(parseDeviceCredential(credential)).toMatchObject({ projectId, deviceId: device.id });
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toEqual(device);
    expect(await registry.ask(topicRequests.get, { projectId, topic: "news" })).toMatchObject({
      name: "news",
      devices: 1,
    });

    await eventually(async () => {
      expect(await registry.lastEvent(projectId, DeviceRegisteredV1)).toMatchObject({
        device_id: device.id,
        token_hash: pushTokenHash(token),
      });
      expect(await registry.lastEvent(projectId, DeviceSubscribedV1)).toMatchObject({ topic: "news" });
      expect(await registry.lastEvent(projectId, TopicCreatedV1)).toMatchObject({ topic: "news" });
      expect(await stored(device.id)).not.toHaveProperty("outbox");
    });
  });

  test("stores no credential, only its hash, and keeps the events of the device in order", async () => {
    const { device, credential } = await registry.register(projectId, token);
    const document = await stored(device.id);
    expect(document).toMatchObject({ credentialHash: secretHash(credential), version: 1 });
    expect(JSON.stringify(document)).not.toContain(credential);
  });

  test("of a known device merges, adds topics, makes it active and rotates the credential", async () => {
    const first = await registry.register(projectId, token, { metadata: { a: 1, b: { c: 1, d: 2 } }, topics: ["x"] });
    const change = { status: "inactive" as const };
    await registry.ask(deviceRequests.change, { projectId, deviceId: first.device.id, change });
    const second = await registry.register(projectId, token, { metadata: { a: null, b: { c: 3 } }, topics: ["y"] });

    expect(second.created).toBe(false);
    expect(second.credential).not.toBe(first.credential);
    expect(second.device).toMatchObject({
      id: first.device.id,
      status: "active",
      metadata: { b: { c: 3, d: 2 } },
      topics: ["x", "y"],
      created_at: first.device.created_at,
    });
    const valid = (credential: string) =>
      registry.ask(deviceRequests.authenticate, {
        projectId,
        deviceId: first.device.id,
        credentialHash: secretHash(credential),
      });
    expect(await valid(first.credential)).toEqual({ valid: false });
    expect(await valid(second.credential)).toEqual({ valid: true });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceUpdatedV1)).toMatchObject({ changed: ["status", "metadata"] }),
    );
  });

  test("on each platform is a device of its own", async () => {
    const ios = await registry.register(projectId, token);
    const android = await registry.register(projectId, token, { platform: "android", tokenKind: "fid" });
    expect(android).toMatchObject({ created: true, device: { token_kind: "fid" } });
    expect(android.device.id).not.toBe(ios.device.id);
    const other = await registry.register(await registry.project(), token);
    expect(other.created).toBe(true);
  });

  test("a hundred times at once creates one device", patient, async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        registry.ask(
          deviceRequests.register,
          { projectId, platform: "ios", token, topics: [], metadata: { [`k${at % 60}`]: at } },
          patientMs,
        ),
      ),
    );
    expect(new Set(answers.map(({ device }) => device.id)).size).toBe(1);
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    const device = await registry.ask(deviceRequests.get, {
      projectId,
      deviceId: answers[0]?.device.id ?? newDeviceId(new Date()),
    });
    expect(Object.keys(device.metadata)).toHaveLength(60);
    const rows = await registry.db.collection("devices").countDocuments({ projectId });
    expect(rows).toBe(1);
  });

  test("of an unknown project is refused, and leaves nothing", async () => {
    const stranger = newProjectId(new Date());
    expect(await failure(registry.register(stranger, token, { topics: ["news"] }))).toMatchObject({
      code: "project-not-found",
    });
    expect(await registry.db.collection("topics").countDocuments({ projectId: stranger })).toBe(0);
  });

  test("keeps data that looks like database operators", async () => {
    const metadata = JSON.parse(
      '{"a":{"_bsontype":"ObjectId","id":"x"},"constructor":{"name":"y"},"toJSON":1,"nul":"a\\u0000b","n":1e21,"big":9007199254740991,"f":1.5,"list":[{"_bsontype":"Long"}]}',
    );
    const { device } = await registry.register(projectId, token, { metadata });
    expect((await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).metadata).toEqual(metadata);
    const change = { metadata: { more: { _bsontype: "Code" } } };
    const after = await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change });
    expect(after.metadata).toEqual({ ...metadata, more: { _bsontype: "Code" } });
  });
});

describe("a change", () => {
  test("of many keys at once loses none, from two registries", patient, async () => {
    const second = registry.newApp();
    await second.start();
    const { device } = await registry.register(projectId, token, { topics: ["news"] });
    const deviceId = device.id;
    await Promise.all(
      Array.from({ length: 50 }, (_, at) => {
        const change = at % 2 ? { metadata: { [`m${at}`]: at } } : { identifiers: { [`i${at}`]: at } };
        return registry.ask(deviceRequests.change, { projectId, deviceId, change }, patientMs);
      }),
    );
    await second.stop();
    const after = await registry.ask(deviceRequests.get, { projectId, deviceId });
    expect(Object.keys(after.metadata)).toHaveLength(25);
    expect(Object.keys(after.identifiers)).toHaveLength(25);
    const document = await registry.db.collection("devices").findOne({ projectId });
    expect(document?.facets).toHaveLength(52); // with its time zone
  });

  test("of the token onto another device's is refused", async () => {
    const { device } = await registry.register(projectId, token);
    const other = await registry.register(projectId, apnsToken("other"));
    const change = { token: other.device.token };
    expect(await failure(registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change }))).toEqual({
      code: "token-in-use",
      messages: ["device.token: another device holds this push token"],
    });
  });

  test("to inactive publishes a deactivation", async () => {
    const { device } = await registry.register(projectId, token);
    const change = { status: "inactive" as const };
    const after = await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change });
    expect(after.status).toBe("inactive");
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceDeactivatedV1)).toMatchObject({ reason: "requested" }),
    );
    expect(await registry.lastEvent(projectId, DeviceUpdatedV1)).toBeUndefined();
  });

  test("that changes nothing keeps even the update time", async () => {
    const { device } = await registry.register(projectId, token, { metadata: { a: 1 } });
    const change = { metadata: { a: 1 } };
    expect(await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change })).toEqual(device);
  });

  test("beyond the limits names the fields", async () => {
    const { device } = await registry.register(projectId, token, { metadata: { a: "x".repeat(9_000) } });
    const change = { metadata: { b: "x".repeat(9_000) } };
    expect(await failure(registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change }))).toEqual({
      code: "validation-failed",
      messages: ["metadata: must be at most 16384 bytes of JSON"],
    });
  });

  test("of metadata by token asks for the platform where two have it", async () => {
    const { device } = await registry.register(projectId, token);
    const ask = (rest: object = {}) =>
      registry.ask(deviceRequests.changeByToken, { projectId, token, metadata: { a: 1 }, ...rest });
    expect(await ask()).toEqual({ id: device.id, status: "active" });
    await registry.register(projectId, token, { platform: "android" });
    expect(await failure(ask())).toMatchObject({
      code: "ambiguous-device",
      messages: [expect.stringMatching(/^platform:/)],
    });
    expect(await ask({ platform: "ios" })).toEqual({ id: device.id, status: "active" });
    expect(await failure(ask({ platform: "web" }))).toMatchObject({ code: "device-not-found" });
  });
});

describe("deletion", () => {
  test("keeps only the event, and frees the token", async () => {
    const { device, credential } = await registry.register(projectId, token, { topics: ["news"], metadata: { a: 1 } });
    const deviceId = device.id;
    expect(await registry.ask(deviceRequests.delete, { projectId, deviceId })).toEqual({});
    for (const question of [deviceRequests.get, deviceRequests.delete])
      expect(await failure(registry.ask(question, { projectId, deviceId }))).toMatchObject({
        code: "device-not-found",
      });
    const credentialHash = secretHash(credential);
    expect(await registry.ask(deviceRequests.authenticate, { projectId, deviceId, credentialHash })).toEqual({
      valid: false,
    });
    const page = { by: "page" as const, page: 1, perPage: 20 };
    expect(await registry.ask(deviceRequests.list, { projectId, page })).toMatchObject({
      data: [],
      pagination: { count: 0 },
    });
    expect(await registry.ask(topicRequests.get, { projectId, topic: "news" })).toMatchObject({ devices: 0 });
    await eventually(async () => {
      expect(await registry.lastEvent(projectId, DeviceDeletedV1)).toMatchObject({ device_id: deviceId });
      expect(await stored(deviceId)).toBeNull();
    });
    expect((await registry.register(projectId, token)).created).toBe(true);
  });

  test("that crashed before its event was published is hidden, and finished by the sweep", async () => {
    const { device } = await registry.register(projectId, token);
    await eventually(async () => expect(await stored(device.id)).not.toHaveProperty("outbox"));
    const at = new Date(Date.now() - 60_000);
    const data = { project_id: projectId, device_id: device.id, at: at.toISOString() };
    const outbox = [{ id: "crashed", event: "DeviceDeletedV1", subject: device.id, at, data }];
    await registry.db
      .collection<{ _id: string }>("devices")
      .updateOne(
        { _id: device.id },
        { $set: { deletedAt: at, outbox, facets: [] }, $unset: { tokenHash: "", status: "" } },
      );
    expect(await failure(registry.ask(deviceRequests.get, { projectId, deviceId: device.id }))).toMatchObject({
      code: "device-not-found",
    });
    await eventually(async () => {
      expect(await registry.lastEvent(projectId, DeviceDeletedV1)).toMatchObject({ device_id: device.id });
      expect(await stored(device.id)).toBeNull();
    });
  });

  test("of another project's device is refused", async () => {
    const { device } = await registry.register(projectId, token);
    const stranger = await registry.project();
    expect(
      await failure(registry.ask(deviceRequests.delete, { projectId: stranger, deviceId: device.id })),
    ).toMatchObject({
      code: "device-not-found",
    });
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toEqual(device);
  });
});
