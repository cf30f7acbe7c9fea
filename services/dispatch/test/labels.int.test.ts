import { publish, sendRequest } from "@herald/bus";
import {
  deliveryRequests,
  type NotificationContent,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  SendGroupV1,
  sendGroupOf,
} from "@herald/contracts";
import { eventually, readPublished } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

let dispatch: DispatchTest;
let answers: RegistryFixture;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answers = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await answers.stop();
  await dispatch.stop();
});
beforeEach(() => dispatch.simulators.clear());

const tagged = { kind: "order-shipped", labels: { campaign: "spring/1", team: "growth" } };
const bad = () => device(`bad${Math.random().toString(16).slice(2, 8)}`);
const refuseBad = () => dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad", status: 400 }]);

const acceptSmall = async (
  projectId: ProjectId,
  content: Partial<NotificationContent>,
  change: object = {},
): Promise<NotificationId> => {
  const [notificationId = "ntf_"] = newNotificationIds(new Date(), 1);
  const send = {
    projectId,
    notificationId,
    content: { title: "Hello", targets: ["user:ann"], ...content },
    acceptedAt: dispatch.now().toISOString(),
    expiresAt: new Date(dispatch.now().getTime() + day).toISOString(),
    ...change,
  };
  await publish(
    dispatch.bus,
    SendGroupV1,
    { groupId: sendGroupOf(notificationId), sends: [send] },
    { id: notificationId },
  );
  return notificationId;
};

/** Kind and labels of a notification's events, by event type. */
const tagsOfEvents = async (projectId: ProjectId, id: NotificationId) => {
  const all = await readPublished(dispatch.broker, `push.evt.v1.${projectId}.>`);
  return Object.fromEntries(
    all
      .filter(({ body }) => body.includes(id))
      .map(({ subject, body }) => {
        const { kind, labels } = JSON.parse(body) as { kind?: string; labels?: object };
        return [subject.split(".").slice(4).join("."), { kind, labels }];
      }),
  );
};

const everyEvent = {
  "notification.accepted": tagged,
  "delivery.accepted": tagged,
  "delivery.failed": tagged,
  "notification.completed": tagged,
};

test("a small send is shown with its kind and labels, and all its events carry them", async () => {
  refuseBad();
  const projectId = await dispatch.project();
  answers.registry.set("user:ann", { devices: [device(), bad()].sort((a, b) => (a.id < b.id ? -1 : 1)) });
  const id = await acceptSmall(projectId, tagged);
  expect(await dispatch.final(projectId, id)).toMatchObject({ ...tagged, counts: { accepted: 1, failed: 1 } });
  await eventually(async () => expect(await tagsOfEvents(projectId, id)).toEqual(everyEvent));
});

test("a large send is shown with its kind and labels, and all its events carry them", async () => {
  refuseBad();
  const projectId = await dispatch.project();
  const id = await dispatch.send(projectId, {}, tagged);
  await dispatch.partition(projectId, id, [devices(2), [bad()]]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ ...tagged, counts: { accepted: 2, failed: 1 } });
  await eventually(async () => expect(await tagsOfEvents(projectId, id)).toEqual(everyEvent));
  const single = await dispatch.send(projectId, {}, tagged);
  await dispatch.partition(projectId, single, [devices(1)], { lane: "direct" });
  await dispatch.final(projectId, single);
  await eventually(async () =>
    expect(await tagsOfEvents(projectId, single)).toMatchObject({ "notification.completed": tagged }),
  );
});

test.each(["small", "large"] as const)("devices of a %s send that had to wait have them too", async (path) => {
  const projectId = await dispatch.project();
  const one = device("503503");
  dispatch.simulators.script([{ provider: "apns", tokenPrefix: "503503", status: 503, times: 1 }]);
  answers.registry.set("user:ann", { devices: [one] });
  const id = path === "small" ? await acceptSmall(projectId, tagged) : await dispatch.send(projectId, {}, tagged);
  if (path === "large") await dispatch.partition(projectId, id, [[one]], { lane: "direct" });
  await eventually(async () => expect((await dispatch.rows(id)).some(({ state }) => state === "waiting")).toBe(true));
  dispatch.pass(3_600_000);
  expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  await eventually(async () =>
    expect(await tagsOfEvents(projectId, id)).toEqual({
      "notification.accepted": tagged,
      "delivery.accepted": tagged,
      "notification.completed": tagged,
    }),
  );
});

test("a scheduled send that is cancelled has them in its last event", async () => {
  const projectId = await dispatch.project();
  const sendAt = new Date(dispatch.now().getTime() + day / 2).toISOString();
  const id = await dispatch.send(projectId, { sendAt }, tagged);
  await eventually(async () => expect((await dispatch.get(projectId, id)).status).toBe("scheduled"));
  expect(await dispatch.cancel(projectId, id)).toMatchObject({ status: "cancelled", ...tagged });
  await eventually(async () =>
    expect(await tagsOfEvents(projectId, id)).toEqual({
      "notification.accepted": tagged,
      "notification.cancelled": tagged,
    }),
  );
});

test("dispatch tells analytics the tags of notifications whose opens it publishes", async () => {
  const projectId = await dispatch.project();
  const one = device();
  answers.registry.set("user:ann", { devices: [one] });
  const id = await acceptSmall(projectId, tagged);
  const plain = await acceptSmall(projectId, {});
  for (const each of [id, plain]) await dispatch.final(projectId, each);
  const deliveries = [id, plain].map((notificationId) => ({ notificationId, deviceId: one.id }));
  expect(await sendRequest(dispatch.bus, deliveryRequests.users, { projectId, deliveries })).toEqual({
    users: [null, null],
    tags: { [id]: ["kind/order-shipped", "label/campaign/spring/1", "label/team/growth"] },
    buttons: {},
  });
});

test("a send without kind and labels stores nothing for them", async () => {
  const projectId = await dispatch.project();
  answers.registry.set("user:ann", { devices: [device()] });
  const small = await acceptSmall(projectId, {});
  const large = await dispatch.send(projectId);
  await dispatch.partition(projectId, large, [devices(1)]);
  for (const id of [small, large]) {
    await dispatch.final(projectId, id);
    const document = await dispatch.database.client.db(dispatch.database.name).collection("notifications").findOne({
      projectId,
    });
    expect(document).not.toHaveProperty("tags");
    for (const row of await dispatch.rows(id)) expect(row).not.toHaveProperty("tags");
  }
});
