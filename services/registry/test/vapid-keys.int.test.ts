import { audienceRequests, type DeviceId, deviceRequests, type ProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { deviceCollection } from "../src/stores/device-store.ts";
import { useRegistry } from "./registry-fixture.ts";

const registry = useRegistry();

const keys = { p256dh: `B${"A".repeat(86)}`, auth: "A".repeat(22) };
const [first, second] = ["1111111111111111", "2222222222222222"];
const web = (vapidKeyId?: string, currentVapidKeyId: string | undefined = first) =>
  ({
    platform: "web",
    keys,
    ...(vapidKeyId && { vapidKeyId }),
    ...(currentVapidKeyId && { currentVapidKeyId }),
  }) as const;
const counts = async (projectId: ProjectId) => {
  const { subscriptions } = await registry.ask(audienceRequests.countVapidKeys, { projectId });
  return Object.fromEntries(subscriptions.map(({ keyId, devices }) => [keyId ?? "none", devices]));
};
const change = async (projectId: ProjectId, deviceId: DeviceId, rest: object) =>
  registry.ask(deviceRequests.change, { projectId, deviceId, change: { status: "active" }, ...rest });

test("a subscription keeps the key that it was made with, through every way of registering it", async () => {
  const { register, project, ask } = registry;
  const projectId = await project();
  const endpoint = "https://push.example/1";
  const { device } = await register(projectId, endpoint, web());
  expect(device.vapid_key_id).toBe(first);
  expect((await register(projectId, endpoint, web(undefined, second))).device.vapid_key_id).toBe(first);
  expect((await register(projectId, endpoint, web(second))).device.vapid_key_id).toBe(second);
  expect(await counts(projectId)).toEqual({ [second]: 1 });

  await ask(deviceRequests.identify, {
    projectId,
    token: "https://push.example/2",
    previousToken: endpoint,
    provenDevice: device.id,
    ...web(undefined, first),
  });
  expect(await counts(projectId)).toEqual({ [first]: 1 });

  const moved = { change: { token: "https://push.example/3", keys }, vapidKeyId: second };
  expect(await change(projectId, device.id, moved)).toMatchObject({ id: device.id, vapid_key_id: second });
  expect(await change(projectId, device.id, { change: { metadata: { a: 1 } } })).toMatchObject({
    vapid_key_id: second,
  });
  await expect(change(projectId, device.id, { change: { token: "no-url" } })).rejects.toMatchObject({
    messages: ["device.token: must be the subscription's endpoint, an https URL"],
  });
});

test("keys are counted by their active subscriptions, also those that name none", async () => {
  const { register, project, db } = registry;
  const projectId = await project();
  const ids: DeviceId[] = [];
  for (let at = 0; at < 5; at++)
    ids.push((await register(projectId, `https://push.example/${at}`, web(at < 3 ? first : second))).device.id);
  await register(projectId, "https://push.example/unnamed", { platform: "web", keys });
  await register(projectId, "aa".repeat(16), { currentVapidKeyId: first });
  expect(await counts(projectId)).toEqual({ [first]: 3, [second]: 2, none: 1 });
  await change(projectId, ids[0] as DeviceId, { change: { status: "inactive" } });
  expect(await counts(projectId)).toEqual({ [first]: 2, [second]: 2, none: 1 });
  expect(await counts(await project())).toEqual({});
  // As stored by a version without key ids.
  await deviceCollection(db).updateMany({ projectId, _id: { $in: ids } }, { $unset: { vapidKeyId: "" } });
  expect(await counts(projectId)).toEqual({ none: 5 });
});
