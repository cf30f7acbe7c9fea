import { defineHandler, publish } from "@herald/bus";
import {
  DeliveryFailedV1,
  type Device,
  DeviceDeactivatedV1,
  DeviceUpdatedV1,
  defineMessage,
  deviceRequests,
  newDeviceId,
  newNotificationId,
  ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { apnsToken, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
});
let sent = 0;

const get = (device: Device) => registry.ask(deviceRequests.get, { projectId, deviceId: device.id });

/** Publishes refusals and one more after them: when the last one is handled, all are. */
const report = async (unregistered: DeliveryFailedV1Data["unregistered"], rest: { projectId?: ProjectId } = {}) => {
  const of = rest.projectId ?? projectId;
  const { device: last } = await registry.register(of, apnsToken(`last ${++sent}`));
  const later = new Date(Date.now() + 1_000).toISOString();
  const data = {
    project_id: of,
    notification_id: newNotificationId(new Date()),
    batch_id: "b",
    platform: "ios" as const,
    failures: [],
    // One message, because its refusals are handled in order; two messages would be handled concurrently.
    unregistered: [...unregistered, { device_id: last.id, token_hash: pushTokenHash(last.token), at: later }],
    at: new Date().toISOString(),
  };
  await publish(registry.bus, DeliveryFailedV1, data, { id: `test/${++sent}` });
  const status = async () => (await registry.ask(deviceRequests.get, { projectId: of, deviceId: last.id })).status;
  await eventually(async () => expect(await status()).toBe("inactive"));
};
type DeliveryFailedV1Data = Parameters<typeof DeliveryFailedV1.subject>[0];

const refusal = (device: Device, offsetMs: number, token = device.token) => ({
  device_id: device.id,
  token_hash: pushTokenHash(token),
  at: new Date(Date.now() + offsetMs).toISOString(),
});

describe("a refusal of a token that is unregistered", () => {
  test("deactivates the device and publishes the reason", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"), { topics: ["news"] });
    await report([refusal(device, 1_000)]);
    expect(await get(device)).toMatchObject({ status: "inactive", topics: ["news"], token: device.token });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceDeactivatedV1)).toMatchObject({ reason: "unregistered" }),
    );
  });

  test("ends the token of a push type alone, unless the app has sent it since", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const [dead, kept] = [apnsToken("dead"), apnsToken("kept")];
    const put = (push: string, token: string) =>
      registry.ask(deviceRequests.putToken, { projectId, deviceId: device.id, push, token });
    await put("voip", dead);
    await put("widgets", kept);
    await report([refusal(device, 1_000, dead), refusal(device, -1_000, kept)]);
    expect(await get(device)).toMatchObject({
      status: "active",
      tokens: [{ type: "widgets", token: kept }],
    });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceUpdatedV1)).toMatchObject({ changed: ["tokens"] }),
    );
  });

  test("that is delivered twice publishes no second event", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    await report([refusal(device, 1_000)]);
    const first = await get(device);
    await report([refusal(device, 2_000)]);
    expect(await get(device)).toEqual(first);
  });

  test("about an older registration changes nothing", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    await report([refusal(device, -60_000)]);
    expect(await get(device)).toMatchObject({ status: "active" });
  });

  test("that is late does not reach a device that has registered again", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const late = refusal(device, 0);
    await eventually(async () => {
      const { device: again } = await registry.register(projectId, apnsToken("a"));
      if (again.updated_at <= late.at) throw new Error("the same millisecond");
    });
    await report([late]);
    expect(await get(device)).toMatchObject({ status: "active" });
  });

  test("that is late, of a device whose last registration may not be written: the second one deactivates it", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const devices = registry.db.collection<{ _id: string }>("devices");
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
    await devices.updateOne({ _id: device.id }, { $set: { tokenUpdatedAt: hoursAgo(20) } });
    const late = refusal(device, -3_600_000);
    await report([late, late]);
    expect(await get(device)).toMatchObject({ status: "active" });
    // An unchanged registration clears the doubt.
    const again = () =>
      registry.ask(deviceRequests.identify, {
        projectId,
        platform: "ios",
        token: device.token,
        metadata: device.metadata,
      });
    await again();
    expect(await devices.findOne({ _id: device.id })).not.toHaveProperty("doubtedAt");
    await report([late]);
    expect(await get(device)).toMatchObject({ status: "active" });

    await devices.updateOne({ _id: device.id }, { $set: { tokenUpdatedAt: hoursAgo(20) } });
    await report([late]);
    await devices.updateOne({ _id: device.id }, { $set: { doubtedAt: hoursAgo(1) } });
    await report([late]);
    expect(await get(device)).toMatchObject({ status: "inactive" });
  });

  test("that is late, but later than any unwritten registration, deactivates at once", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const devices = registry.db.collection<{ _id: string }>("devices");
    await devices.updateOne({ _id: device.id }, { $set: { tokenUpdatedAt: new Date(Date.now() - 30 * 3_600_000) } });
    await report([refusal(device, -3_600_000)]);
    expect(await get(device)).toMatchObject({ status: "inactive" });
  });

  test("about the previous token changes nothing", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const change = { token: apnsToken("b") };
    await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change });
    await report([refusal(device, 1_000)]);
    expect(await get(device)).toMatchObject({ status: "active", token: apnsToken("b") });
  });

  test("of another project or an unknown device changes nothing, and the others of the batch are applied", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    await report([refusal(device, 1_000)], { projectId: await registry.project() });
    expect(await get(device)).toMatchObject({ status: "active" });
    const unknownDevice = { ...refusal(device, 1_000), device_id: newDeviceId(new Date()) };
    await report([unknownDevice, refusal(device, 1_000), unknownDevice]);
    expect(await get(device)).toMatchObject({ status: "inactive" });
  });

  test("that is malformed becomes a dead letter, and the next one is handled", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const anything = defineMessage(
      "Any",
      DeliveryFailedV1.pattern as "push.:project_id",
      z.looseObject({ project_id: ProjectId }),
    );
    const dead: unknown[] = [];
    const handling = await registry.handle(
      defineHandler({
        durable: "dispatch-dead-letters",
        message: anything,
        handle: async ({ data }) => void dead.push(data),
      }),
    );
    const poison = { project_id: projectId, unregistered: "all of them" };
    await publish(registry.bus, anything, poison, { id: `poison/${++sent}` });
    await eventually(() => expect(dead).toEqual([poison]));
    await handling.stop(1_000);
    await report([refusal(device, 1_000)]);
    expect(await get(device)).toMatchObject({ status: "inactive" });
  });

  test.each(["token-invalid", "endpoint-forbidden"] as const)(
    "of a token that is wrong for ever names %s",
    async (reason) => {
      const { device } = await registry.register(projectId, apnsToken("wrong"));
      await report([{ ...refusal(device, 1_000), reason }]);
      expect(await get(device)).toMatchObject({ status: "inactive", inactive_reason: reason });
      // The app registers it again, perhaps with other keys.
      expect((await registry.register(projectId, apnsToken("wrong"))).device).toMatchObject({ status: "active" });
    },
  );

  test("is undone by a new token, unless the app had deactivated the device", async () => {
    const { device } = await registry.register(projectId, apnsToken("a"));
    const { device: other } = await registry.register(projectId, apnsToken("other"));
    const change = (id: Device["id"], change: { status?: "inactive"; token?: string }) =>
      registry.ask(deviceRequests.change, { projectId, deviceId: id, change });
    await report([refusal(device, 1_000), refusal(other, 1_000)]);
    await change(other.id, { status: "inactive" });
    expect(await change(device.id, { token: apnsToken("b") })).toMatchObject({ status: "active" });
    expect(await change(other.id, { token: apnsToken("c") })).toMatchObject({ status: "inactive" });
  });
});
