import { handleRequest, lastMessage, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  ExpandV1,
  NotificationChangedV1,
  type NotificationId,
  notificationRequests,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";

const hour = 3_600_000;

let dispatch: DispatchTest;
let answering: RequestListener;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answering = handleRequest(dispatch.bus, audienceRequests.zones, async () => ({ zones: ["none"] }));
});
afterAll(async () => {
  await answering.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  projectId = await dispatch.project();
});
afterEach(() => {
  dispatch.clock.ahead = 0;
});

const inFuture = (ms: number) => new Date(dispatch.now().getTime() + ms).toISOString();
const schedule = (ms: number) => {
  const sendAt = inFuture(ms);
  return dispatch.send(projectId, { sendAt }, { send_at: sendAt });
};
const change = (notificationId: NotificationId, fields: object, zone?: string) =>
  sendRequest(dispatch.bus, notificationRequests.change, {
    projectId,
    notificationId,
    change: fields,
    ...(zone && { zone }),
  });
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => "accepted",
    (error: unknown) =>
      error instanceof HeraldError ? [error.code, ...error.messages].join(": ") : Promise.reject(error),
  );
const isExpanded = async (id: NotificationId) => {
  const subject = ExpandV1.subject({ projectId, notificationId: id, page: 0 } as ExpandV1);
  return (await lastMessage(dispatch.bus, "PUSH_CMD", subject, ExpandV1)) !== undefined;
};

test("a later time holds, also for the message that was scheduled for the first one, and has an event", async () => {
  const sendAt = inFuture(2 * hour);
  // On a slow machine it may have begun before the change: then another one is changed.
  const { id, changed } = await eventually(async () => {
    const one = await schedule(1_500);
    return { id: one, changed: await change(one, { send_at: sendAt, ttl: 60 }) };
  });
  expect(changed).toMatchObject({ status: "scheduled", send_at: sendAt, ttl: 60 });
  await eventually(async () =>
    expect(await dispatch.lastEvent(projectId, NotificationChangedV1)).toMatchObject({
      notification_id: id,
      send_at: sendAt,
    }),
  );
  // When this one begins, the first time of the other has passed on the broker's clock.
  const later = await schedule(1_500);
  await eventually(async () => expect(await isExpanded(later)).toBe(true));
  expect(await isExpanded(id)).toBe(false);
  dispatch.pass(2 * hour);
  await dispatch.partition(projectId, id, [[device()]]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "completed" });
});

test("a time in the past sends it now; a time of devices makes waves, and an instant ends them", async () => {
  const id = await schedule(2 * hour);
  const local = inFuture(24 * hour).slice(0, 19);
  const zoned = await change(id, { send_at: local, time_zone: "device" }, "Asia/Tokyo");
  expect(Date.parse(zoned.schedule?.[0]?.at ?? "")).toBe(Date.parse(`${local}+09:00`));
  const back = await change(id, { send_at: inFuture(-hour), time_zone: null });
  expect(back.schedule).toBeUndefined();
  await dispatch.partition(projectId, id, [[device()]]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 1 } });
});

test("is refused once it has begun or ended, and where fields do not fit together", async () => {
  const begun = await dispatch.send(projectId);
  await eventually(async () => expect(await isExpanded(begun)).toBe(true));
  expect(await refusal(change(begun, { ttl: 5 }))).toMatch(/^notification-started: /);
  await dispatch.partition(projectId, begun, [[device()]]);
  await dispatch.final(projectId, begun);
  expect(await refusal(change(begun, { ttl: 5 }))).toMatch(/^notification-final: /);

  const waiting = await schedule(hour);
  expect(await refusal(change(waiting, { time_zone: "device" }))).toMatch(
    /validation-failed: notification.send_at: has an offset/,
  );
  expect(await refusal(change(waiting, { send_at: "2030-01-31T09:00:00" }))).toMatch(
    /notification.send_at: has no offset/,
  );
  expect(await refusal(change(waiting, { send_at: inFuture(31 * 24 * hour) }))).toMatch(/at most 30 days ahead/);
  const passed = inFuture(-hour).slice(0, 19);
  expect(await refusal(change(waiting, { send_at: passed, time_zone: "device" }))).toMatch(
    /notification.past: is required/,
  );
});

test("of a change and the beginning at the same moment, one wins", async () => {
  for (let round = 0; round < 6; round++) {
    const id = await schedule(hour);
    await eventually(async () => expect((await dispatch.get(projectId, id)).status).toBe("scheduled"));
    // The following changes meet the message or the sweep that begins it.
    await refusal(change(id, { send_at: inFuture(20 * round) }));
    const later = inFuture(2 * hour);
    const attempts: string[] = [];
    for (let attempt = 0; attempt < 3 + round; attempt++) attempts.push(await refusal(change(id, { send_at: later })));
    const { status } = await dispatch.get(projectId, id);
    const isChanged = attempts.some((answer) => answer === "accepted");
    expect([isChanged, status]).toEqual([
      isChanged,
      isChanged ? "scheduled" : expect.stringMatching(/accepted|sending/),
    ]);
    // One that has begun is expanded when its project has a place.
    if (isChanged) expect(await isExpanded(id)).toBe(false);
    else await eventually(async () => expect(await isExpanded(id)).toBe(true));
  }
});
