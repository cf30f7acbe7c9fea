import { randomUUID } from "node:crypto";
import { sendGroupedRequest } from "@herald/bus";
import {
  type DeviceId,
  deviceRequests,
  newDeviceId,
  type OutboxEvent,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { eventually, readPublished } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { apnsToken, patient, untilAnswered, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
  overrides: { pendingEveryMs: 200 },
});

type Stored = { _id: string; projectId: string; version: number; lastSeenAt: Date; tokenUpdatedAt: Date };
const devices = () => registry.db.collection<Stored>("devices");
type Pending = { _id: string; at: Date; events: OutboxEvent[] };
const pending = () => registry.db.collection<Pending>("pendingEvents");

/** Sends requests as a gateway does: concurrent requests share a message. */
const grouped = () => ({
  register: sendGroupedRequest(() => registry.bus, deviceRequests.register),
  identify: sendGroupedRequest(() => registry.bus, deviceRequests.identify),
});
const wanted = (seed: string | number) => ({
  projectId,
  platform: "ios" as const,
  token: apnsToken(`${projectId} ${seed}`),
});

/** The project's events of a type in the stream, each with its device. */
const eventsOf = async (type: string): Promise<{ id: string; deviceId: string }[]> => {
  const found = await readPublished(registry.broker, `push.evt.v1.${projectId}.${type}`);
  return found.map(({ headers, body }) => ({
    id: headers["ce-id"] ?? "",
    deviceId: (JSON.parse(body) as { device_id: string }).device_id,
  }));
};

/** Waits until exactly these devices have one registration event each, and no event waits to be published. */
const eachToldOnce = async (ids: readonly string[]): Promise<void> => {
  await eventually(
    async () => {
      expect((await eventsOf("device.registered")).map(({ deviceId }) => deviceId).sort()).toEqual([...ids].sort());
      expect(await pending().countDocuments({ "events.data.project_id": projectId })).toBe(0);
    },
    { timeoutMs: 60_000 },
  );
};

describe("registrations of the same moment", () => {
  test("of one token through two replicas are one device with one event", async () => {
    const second = registry.newApp();
    await second.start();
    await eventually(() => registry.ready(second.address()));
    const tokens = [1, 2, 3, 4, 5];
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        registry.ask(deviceRequests.identify, { ...wanted(tokens[at % 5] ?? 0), metadata: { [`k${at}`]: at } }),
      ),
    );
    await second.stop();
    const ids = new Set(outcomes.map(({ device }) => device.id));
    expect(ids.size).toBe(5);
    expect(outcomes.filter(({ created }) => created)).toHaveLength(5);
    expect(outcomes.filter(({ credential }) => credential !== undefined)).toHaveLength(5);
    for (const id of ids) {
      const { metadata } = await registry.ask(deviceRequests.get, { projectId, deviceId: id });
      expect(Object.keys(metadata)).toHaveLength(12);
    }
    await eachToldOnce([...ids]);
  });

  test("are a few commands, and one that is refused leaves the others alone", patient, async () => {
    const register = untilAnswered(grouped().register);
    const many = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`k${at}`, at]));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, (_, at) =>
        register({ ...wanted(at), topics: ["news"], ...(at % 10 === 3 ? { metadata: many } : {}) }),
      ),
    );
    const refused = outcomes.flatMap((one, at) => (one.status === "rejected" ? [[at, one.reason] as const] : []));
    expect(refused.map(([at]) => at)).toEqual([3, 13, 23, 33, 43, 53, 63, 73, 83, 93]);
    for (const [, reason] of refused)
      expect(reason).toMatchObject({ code: "validation-failed", messages: [expect.stringContaining("at most 64")] });
    const ids = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value.device.id] : []));
    expect(await devices().countDocuments({ projectId })).toBe(90);
    await eachToldOnce(ids);
    expect(await eventsOf("device.subscribed")).toHaveLength(90);
  });

  test("of known and new devices in one group: each is what it is", async () => {
    const { register } = grouped();
    const known = await Promise.all([0, 1, 2, 3, 4].map((at) => register({ ...wanted(at), topics: [] })));
    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, at) => register({ ...wanted(at), topics: [] })));
    expect(outcomes.map(({ created }) => created)).toEqual([...Array(5).fill(false), ...Array(5).fill(true)]);
    for (const [at, { device, credential }] of known.entries()) {
      expect(outcomes[at]?.device.id).toBe(device.id);
      expect(outcomes[at]?.credential).not.toBe(credential);
    }
    await eachToldOnce(outcomes.map(({ device }) => device.id));
  });

  test(
    "while the database is interrupted: each device of a reply exists, and every event is published under one id",
    patient,
    async () => {
      const { identify } = grouped();
      const identifyAll = (ask: typeof identify) =>
        Promise.allSettled(Array.from({ length: 200 }, (_, at) => ask({ ...wanted(at), metadata: { at } })));
      const first = identifyAll(identify);
      await eventually(async () => expect(await devices().countDocuments({ projectId })).toBeGreaterThan(0));
      await registry.database.cut();
      const cut = await first;
      for (const one of cut)
        if (one.status === "rejected")
          expect(["database-unavailable", "service-unavailable"]).toContain(one.reason.code);
      await registry.database.heal();
      await eventually(() => registry.ready(registry.app.address()), { timeoutMs: 20_000 });
      const second = await identifyAll(untilAnswered(identify));
      const ids = second.map((one) => (one.status === "fulfilled" ? one.value.device.id : `${one.reason}`));
      expect(new Set(ids).size).toBe(200);
      expect(await devices().countDocuments({ projectId })).toBe(200);
      for (const [at, one] of cut.entries()) if (one.status === "fulfilled") expect(one.value.device.id).toBe(ids[at]);
      await eventually(
        async () => {
          const told = await eventsOf("device.registered");
          expect(new Set(told.map(({ deviceId }) => deviceId))).toEqual(new Set(ids));
          // The sweep publishes again what was published and could not be removed, under the same ids.
          expect(new Set(told.map(({ id }) => id)).size).toBe(200);
        },
        { timeoutMs: 60_000 },
      );
    },
  );
});

describe("a crash", () => {
  const registered = (deviceId: DeviceId, at: Date): OutboxEvent => ({
    id: randomUUID(),
    event: "DeviceRegisteredV1",
    subject: deviceId,
    at,
    data: {
      project_id: projectId,
      device_id: deviceId,
      platform: "ios",
      token_hash: pushTokenHash(deviceId),
      at: at.toISOString(),
    },
  });

  test("between the devices and their events: the sweep publishes those of the devices that are stored, and of no other", async () => {
    const { device } = await registry.register(projectId, apnsToken("stored"));
    await eachToldOnce([device.id]);
    const at = new Date(Date.now() - 10_000);
    const lost = newDeviceId(at);
    const events = [registered(device.id, at), registered(lost, at)];
    const _id = randomUUID();
    await pending().insertOne({ _id, at, events });
    await eventually(async () => expect(await eventsOf("device.registered")).toHaveLength(2));
    // The insert of the lost device may still be in progress.
    await eventually(async () => expect((await pending().findOne({ _id }))?.events).toEqual([events[1]]));
    expect((await eventsOf("device.registered")).map(({ id }) => id)).toContain(events[0]?.id);

    await pending().updateOne({ _id }, { $set: { at: new Date(Date.now() - 200_000) } });
    await eventually(async () => expect(await pending().countDocuments({ _id })).toBe(0));
    expect(await eventsOf("device.registered")).toHaveLength(2);
  });

  test("before what is younger than it takes: the sweep leaves it to the process that wrote it", async () => {
    const young = { _id: randomUUID(), at: new Date(Date.now() + 60_000), events: [] };
    const old = {
      _id: randomUUID(),
      at: new Date(Date.now() - 200_000),
      events: [registered(newDeviceId(new Date()), new Date())],
    };
    await pending().insertMany([young, old]);
    await eventually(async () => expect(await pending().countDocuments({ _id: old._id })).toBe(0));
    expect(await pending().countDocuments({ _id: young._id })).toBe(1);
    await pending().deleteOne({ _id: young._id });
  });
});

describe("a device that registers as it is", () => {
  const identification = () => ({
    ...wanted("same"),
    metadata: { plan: "pro", gone: null },
    identifiers: { os: "17" },
  });
  const stored = () => devices().findOne({ projectId });

  test("is not written and publishes nothing", async () => {
    const { device } = await registry.ask(deviceRequests.identify, identification());
    await eachToldOnce([device.id]);
    const before = await stored();
    const { identify } = grouped();
    const again = await Promise.all(Array.from({ length: 20 }, () => identify(identification())));
    for (const one of again) expect(one).toEqual({ device, created: false });
    expect(await stored()).toEqual(before);
    // This event is published last: when it arrives, any others have arrived.
    const { device: last } = await registry.register(projectId, apnsToken("last"));
    await eachToldOnce([device.id, last.id]);
    expect(await eventsOf("device.updated")).toEqual([]);
  });

  test("is written once a day: when it was seen, and nothing else", async () => {
    const { device } = await registry.ask(deviceRequests.identify, identification());
    const past = new Date(Date.now() - 2 * 86_400_000);
    await devices().updateOne({ _id: device.id }, { $set: { lastSeenAt: past, tokenUpdatedAt: past } });
    const before = await stored();
    await registry.ask(deviceRequests.identify, identification());
    await eventually(async () => expect((await stored())?.lastSeenAt.getTime()).toBeGreaterThan(past.getTime()));
    const after = await stored();
    expect(after).toEqual({ ...before, lastSeenAt: after?.lastSeenAt, tokenUpdatedAt: after?.lastSeenAt });
    const shown = await registry.ask(deviceRequests.get, { projectId, deviceId: device.id });
    expect(shown.last_seen_at).toBe(after?.lastSeenAt.toISOString());
    await registry.ask(deviceRequests.identify, identification());
    expect(await stored()).toEqual(after);
  });

  test("with one changed value is written and published", async () => {
    const { device } = await registry.ask(deviceRequests.identify, identification());
    await registry.ask(deviceRequests.identify, { ...identification(), identifiers: { os: "18" } });
    expect(await stored()).toMatchObject({ version: 2, identifiers: { os: "18" } });
    await eventually(async () =>
      expect((await eventsOf("device.updated")).map(({ deviceId }) => deviceId)).toEqual([device.id]),
    );
  });
});
