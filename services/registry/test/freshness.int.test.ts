import { publish } from "@herald/bus";
import {
  type Device,
  DeviceDeactivatedV1,
  deviceRequests,
  NotificationOpenedV1,
  newNotificationId,
  type ProjectId,
  projectRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { apnsToken, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
  overrides: { staleEveryMs: 100 },
});
const day = 86_400_000;

const get = (id: Device["id"]) => registry.ask(deviceRequests.get, { projectId, deviceId: id });
const collection = () => registry.db.collection<{ _id: string; lastSeenAt?: Date; updatedAt?: Date }>("devices");

/** A device that was last seen `days` days ago. */
const seenDaysAgo = async (days: number, name = `device of ${days} days`): Promise<Device> => {
  const { device } = await registry.register(projectId, apnsToken(name));
  const at = new Date(Date.now() - days * day);
  await collection().updateOne({ _id: device.id }, { $set: { lastSeenAt: at, updatedAt: at } });
  return get(device.id);
};
const open = (device: Device, at: Date) => {
  const notificationId = newNotificationId(new Date());
  const data = { project_id: projectId, notification_id: notificationId, device_id: device.id, at: at.toISOString() };
  return publish(registry.bus, NotificationOpenedV1, data, { id: `${notificationId}/${device.id}` });
};
const isSeenNow = ({ last_seen_at }: Device) => Date.parse(last_seen_at ?? "") > Date.now() - day / 2;

describe("a device is seen", () => {
  test("when its app writes metadata, also the same again, and not when the backend does", async () => {
    const device = await seenDaysAgo(3);
    const change = { metadata: { plan: "pro" } };
    const byBackend = await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change });
    expect(byBackend.last_seen_at).toBe(device.last_seen_at);
    await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change, byApp: true });
    await eventually(async () => expect(isSeenNow(await get(device.id))).toBe(true));

    const other = await seenDaysAgo(3, "other");
    const more = { metadata: { plan: "team" } };
    const byApp = await registry.ask(deviceRequests.change, {
      projectId,
      deviceId: other.id,
      change: more,
      byApp: true,
    });
    expect(isSeenNow(byApp)).toBe(true);

    const third = await seenDaysAgo(3, "third");
    await registry.ask(deviceRequests.changeByToken, { projectId, token: third.token, metadata: {} });
    await eventually(async () => expect(isSeenNow(await get(third.id))).toBe(true));
  });

  test("when it opens a notification, once a day", async () => {
    const [old, seen] = [await seenDaysAgo(3), await seenDaysAgo(0.5, "recent")];
    await open(seen, new Date(Date.now() - 0.4 * day));
    await eventually(async () => expect(await get(seen.id)).toHaveProperty("last_opened_at"));
    const recent = await get(seen.id);
    await open(recent, new Date());
    // The clock that made this time is ahead.
    await open(old, new Date(Date.now() + 400 * day));
    await eventually(async () => expect(isSeenNow(await get(old.id))).toBe(true));
    expect(Date.parse((await get(old.id)).last_seen_at ?? "")).toBeLessThanOrEqual(Date.now());
    expect(await get(recent.id)).toEqual(recent);
  });

  test("what it opened counts apart, to within a day, and targets find it", async () => {
    const [opener, other] = [await seenDaysAgo(0.5, "opener"), await seenDaysAgo(0.5, "other")];
    expect(opener).not.toHaveProperty("last_opened_at");
    const openedAt = async () => Date.parse((await get(opener.id)).last_opened_at ?? "");
    await open(opener, new Date(Date.now() - 3 * day));
    await eventually(async () => expect(Math.abs((await openedAt()) - (Date.now() - 3 * day))).toBeLessThan(60_000));
    expect((await get(opener.id)).last_seen_at).toBe(opener.last_seen_at);
    await open(opener, new Date());
    await eventually(async () => expect(Date.now() - (await openedAt())).toBeLessThan(60_000));
    // Another one of the same day is not stored.
    const before = await collection().findOne({ _id: opener.id });
    await open(opener, new Date());
    await open(other, new Date(Date.now() - 40 * day));
    await eventually(async () => expect(await get(other.id)).toHaveProperty("last_opened_at"));
    expect(await collection().findOne({ _id: opener.id })).toEqual(before);

    const page = { by: "key", after: "", perPage: 100 } as const;
    const found = async (match: string) =>
      (await registry.ask(deviceRequests.list, { projectId, page, match })).data.map(({ id }) => id);
    expect(await found("condition:last_opened_at > '-30d'")).toEqual([opener.id]);
    expect(await found("condition:last_opened_at < '-30d'")).toEqual([other.id]);
    expect(await found("condition:!(last_opened_at > '-50d')")).not.toContain(other.id);
  });
});

describe("a project with stale_after", () => {
  test("deactivates devices that were silent for longer, with an event, and a registration activates them", async () => {
    const [silent, fresh] = [await seenDaysAgo(31), await seenDaysAgo(29)];
    const never = await seenDaysAgo(40, "from before there was a time");
    await collection().updateOne({ _id: never.id }, { $unset: { lastSeenAt: "" } });
    const project = await registry.ask(projectRequests.change, { projectId, staleAfter: "30d" });
    expect(project.stale_after).toBe("30d");
    await eventually(async () => {
      for (const { id } of [silent, never])
        expect(await get(id)).toMatchObject({ status: "inactive", inactive_reason: "stale" });
    });
    expect(await get(fresh.id)).toMatchObject({ status: "active" });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceDeactivatedV1)).toMatchObject({ reason: "stale" }),
    );
    const { device: registered } = await registry.register(projectId, silent.token);
    for (const again of [registered, await get(silent.id)]) {
      expect(again.status).toBe("active");
      expect(again).not.toHaveProperty("inactive_reason");
    }
  });

  test("deactivates none once it is off", async () => {
    await registry.ask(projectRequests.change, { projectId, staleAfter: "30d" });
    const off = await registry.ask(projectRequests.change, { projectId, staleAfter: null });
    expect(off).not.toHaveProperty("stale_after");
    const silent = await seenDaysAgo(31);
    const later = await registry.project();
    await registry.ask(projectRequests.change, { projectId: later, staleAfter: "30d" });
    // A pass over all projects deactivates a device of another project, but not this one.
    const { device } = await registry.register(later, apnsToken("later"));
    await collection().updateOne({ _id: device.id }, { $set: { lastSeenAt: new Date(0) } });
    await eventually(async () =>
      expect(await registry.ask(deviceRequests.get, { projectId: later, deviceId: device.id })).toMatchObject({
        status: "inactive",
      }),
    );
    expect(await get(silent.id)).toMatchObject({ status: "active" });
  });
});
