import { type GroupedSend, newNotificationIds, type ProjectId, SendOneV1 } from "@herald/contracts";
import { eventually, readPublished, readStream } from "@herald/testing";
import { expect, test } from "vitest";
import { deadLetterActions } from "./dead-letters-fixture.ts";
import { device } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

const { dispatch, answers, sendsOf, groupOf, put, putAlone, pushesTo } = useSendGroups();

/** A send to one device, as from the gateway. */
const newSend = (projectId: ProjectId) => {
  const one = device();
  const [send] = sendsOf(projectId, [one]) as [GroupedSend];
  return { one, send };
};

const hold = () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answers().withhold(promise);
  return resolve;
};

test("a send in its own message is pushed, counted and removed from the stream", async () => {
  const projectId = await dispatch().project();
  const { one, send } = newSend(projectId);
  await putAlone(send);
  expect(await dispatch().final(projectId, send.notificationId)).toMatchObject({
    status: "completed",
    counts: { devices: 1, accepted: 1 },
  });
  expect(pushesTo([one])).toEqual([1]);
  await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
});

test.each(["before", "after"] as const)("one that comes alone %s its group is pushed once", async (when) => {
  const projectId = await dispatch().project();
  const { one, send } = newSend(projectId);
  if (when === "before") await putAlone(send);
  await put(groupOf([send]));
  if (when === "after") await putAlone(send);
  expect(await dispatch().final(projectId, send.notificationId)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
  await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
  expect(pushesTo([one])).toEqual([1]);
  const events = await readPublished(dispatch().broker, `push.evt.v1.${projectId}.>`);
  expect(new Set(events.map(({ subject }) => subject)).size).toBe(3);
});

test("one that is not stored yet is found by its project alone, and so are the others of its group", async () => {
  const projectId = await dispatch().project();
  const { send } = newSend(projectId);
  const [, second = "ntf_"] = newNotificationIds(new Date(), 2);
  const neighbour = { ...newSend(projectId).send, notificationId: second };
  const release = hold();
  await put(groupOf([neighbour]));
  await putAlone(send);
  await putAlone({ ...neighbour });
  for (const { notificationId: id } of [send, neighbour]) {
    expect(await dispatch().get(projectId, id)).toMatchObject({ id, status: "accepted" });
    await expect(dispatch().get(await dispatch().project(), id)).rejects.toMatchObject({
      code: "notification-not-found",
    });
  }
  expect(await dispatch().cancel(projectId, send.notificationId)).toMatchObject({ status: "cancelled" });
  release();
  await dispatch().final(projectId, neighbour.notificationId);
  await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
  expect(await dispatch().get(projectId, send.notificationId)).toMatchObject({ status: "cancelled" });
});

test("a send in the dead letters is expanded like a large send", async () => {
  const { die } = deadLetterActions(dispatch);
  const projectId = await dispatch().project();
  const { send } = newSend(projectId);
  await die("dispatch-single-sends", SendOneV1, send, { body: send });
  expect(await dispatch().expansion(projectId, send.notificationId)).toMatchObject({ targets: send.content.targets });
});
