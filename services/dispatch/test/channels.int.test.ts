import { countMessages, openBucket, publish, sendRequest } from "@herald/bus";
import {
  type ActivityKey,
  ActivityRecord,
  activityKey,
  activityRequests,
  JoinActivityV1,
  type ProjectId,
  SendV1,
} from "@herald/contracts";
import { endActivity, firstSends, newActivityRecord } from "@herald/rules";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";

/** The channels of Live Activities: asked for, lost and deleted. */

const hour = 3_600_000;
let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest({ HERALD_DISPATCH_REQUEST_TIMEOUT: "2s" });
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

let ids = 0;
/** A project with an app of its own, and an activity in it. */
const world = async () => {
  const app = `com.example.app-${++ids}`;
  const projectId = await dispatch.project();
  await dispatch.putProvider(projectId, { bundle_id: app });
  const key: ActivityKey = { projectId, id: `match-${ids}` };
  const record = newActivityRecord(
    {
      ...{ attributes_type: "Match", attributes: {}, content_state: { n: 1 }, targets: ["all"], start: true },
      ...{ alert: { title: "Match", body: "It begins." }, via: "channel" },
    },
    "put",
    dispatch.now(),
  );
  await bucket().create(activityKey(key), record);
  return { app, key, record, projectId };
};
const bucket = () => openBucket(dispatch.bus, "push_activities", ActivityRecord);
const recordOf = async (key: ActivityKey) => (await bucket().get(activityKey(key)))?.value;
const write = async (key: ActivityKey, change: (record: ActivityRecord) => ActivityRecord) => {
  const entry = await bucket().get(activityKey(key));
  if (!entry) throw new Error("there is no record");
  expect(await bucket().update(activityKey(key), change(entry.value), entry.revision)).toBe(true);
};
const end = (key: ActivityKey) =>
  write(key, (record) => {
    const ended = endActivity(key, record, {}, dispatch.now(), "body");
    if (ended.kind !== "written") throw new Error(ended.kind);
    return ended.record;
  });
/** Starts the activity on a device that can follow a channel. Resolves to the pushes to it. */
const start = async ({ key, record, projectId }: Awaited<ReturnType<typeof world>>) => {
  const [send] = firstSends(key, record);
  if (!send) throw new Error("there is no start");
  const one = device("00", { channels: true });
  await publish(dispatch.bus, SendV1, send, { id: send.notificationId });
  await dispatch.partition(projectId, send.notificationId, [[one]]);
  const { counts } = await dispatch.final(projectId, send.notificationId);
  return { counts, pushes: dispatch.simulators.pushes({ token: one.token }) };
};
const channelsOf = (app: string) => dispatch.simulators.channels.list().filter((channel) => channel.app === app);
const addForeign = (app: string) =>
  fetch(`${dispatch.simulators.control.url}/apns/channels`, { method: "POST", body: JSON.stringify({ app }) });
let tended = 0;
/** Lets dispatch do what is due for an activity, and resolves when it is done. */
const tend = async ({ projectId, id: activityId }: ActivityKey) => {
  const message = { projectId, activityId };
  await publish(dispatch.bus, JoinActivityV1, message, { id: `tend-${++tended}` });
  await eventually(async () => {
    // From a work queue a message goes when it is settled.
    expect(await countMessages(dispatch.bus, "PUSH_CMD", JoinActivityV1.subject(message))).toBe(0);
  });
};
const nameOf = (app: string) => `${app}/sandbox`;
const ask = (key: ActivityKey, more: object = {}) =>
  sendRequest(dispatch.bus, activityRequests.channel, { projectId: key.projectId, activityId: key.id, ...more });

describe("a start", () => {
  test("names the channel that it made, once for all of its devices", async () => {
    const one = await world();
    const { pushes } = await start(one);
    const [channel, ...others] = channelsOf(one.app);
    expect(others).toEqual([]);
    expect(pushes).toMatchObject([{ payload: { aps: { "input-push-channel": channel?.id } } }]);
    expect((await recordOf(one.key))?.channels).toMatchObject({ [nameOf(one.app)]: { id: channel?.id } });
    expect(await Promise.all([ask(one.key), ask(one.key)])).toEqual([{ id: channel?.id }, { id: channel?.id }]);
    expect(channelsOf(one.app)).toHaveLength(1);
  });

  test("of an activity that has ended, or has no channel, makes none", async () => {
    const one = await world();
    await end(one.key);
    expect((await start(one)).counts).toMatchObject({ skipped: 1 });
    expect(await ask(one.key)).toEqual({});
    const other = await world();
    await write(other.key, ({ via: _, ...record }) => record);
    expect((await start(other)).pushes).toMatchObject([{ payload: { aps: { "input-push-token": 1 } } }]);
    expect([...channelsOf(one.app), ...channelsOf(other.app)]).toEqual([]);
  });

  test("asks for one channel at a time, of many requests", async () => {
    const { app, key } = await world();
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(key)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(channelsOf(app)).toHaveLength(1);
    expect(await ask(key, { app: "com.example.foreign" })).toEqual({});
  });
});

describe("an ask whose answer is lost", () => {
  const lose = async (one: Awaited<ReturnType<typeof world>>) => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${one.app}`, times: 2, hang: true }]);
    // The list hangs, too, and is given up: then it is not known what was there before.
    await ask(one.key).catch(() => {});
    await eventually(() => expect(channelsOf(one.app)).toHaveLength(1));
  };
  /** The same with a list: what was there before is known. */
  const loseAfterList = async (one: Awaited<ReturnType<typeof world>>, before: string) => {
    await write(one.key, (record) => ({
      ...record,
      channels: { [nameOf(one.app)]: { askedAt: dispatch.now().getTime(), before } },
    }));
    await addForeign(one.app);
  };
  const entryOf = async ({ key, app }: Awaited<ReturnType<typeof world>>) =>
    (await recordOf(key))?.channels?.[nameOf(app)];

  test("leaves the devices with tokens, and is not repeated", async () => {
    const one = await world();
    await lose(one);
    expect((await start(one)).pushes).toMatchObject([{ payload: { aps: { "input-push-token": 1 } } }]);
    await eventually(async () => expect((await entryOf(one))?.problem).toMatch(/no answer within/));
    dispatch.simulators.clear();
    expect(await ask(one.key)).toEqual({});
    expect(channelsOf(one.app)).toHaveLength(1);
    dispatch.pass(61_000);
    await tend(one.key);
    expect(await entryOf(one)).not.toHaveProperty("left");
  });

  test("is looked at, and what it left is deleted when no activity can need it", async () => {
    const one = await world();
    await loseAfterList(one, "");
    const [made] = channelsOf(one.app);
    dispatch.pass(61_000);
    await tend(one.key);
    expect((await entryOf(one))?.left).toMatchObject({ id: made?.id });
    dispatch.pass(12 * hour);
    await tend(one.key);
    dispatch.pass(hour);
    expect(channelsOf(one.app)).toEqual([made]);
    await tend(one.key);
    expect(channelsOf(one.app)).toEqual([]);
  });

  test("deletes no channel of another sender, in the window or later", async () => {
    const one = await world();
    await loseAfterList(one, "");
    await addForeign(one.app);
    const both = channelsOf(one.app);
    dispatch.pass(61_000);
    await tend(one.key);
    expect((await entryOf(one))?.problem).toBe("no answer");
    dispatch.pass(14 * hour);
    await tend(one.key);
    expect(await entryOf(one)).not.toHaveProperty("left");
    expect(channelsOf(one.app)).toEqual(both);
  });
});

describe("the channels of an activity that has ended", () => {
  test("are deleted four hours later, each apart, and again after a failure", async () => {
    const one = await world();
    await ask(one.key);
    await ask(one.key, { environment: "production" });
    await addForeign(one.app);
    expect(channelsOf(one.app)).toHaveLength(3);
    await end(one.key);
    dispatch.pass(4 * hour - 60_000);
    await tend(one.key);
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${one.app}`, times: 1, status: 503 }]);
    dispatch.pass(60_000);
    expect(channelsOf(one.app)).toHaveLength(3);
    await tend(one.key);
    expect(channelsOf(one.app)).toHaveLength(2);
    await tend(one.key);
    expect(channelsOf(one.app)).toHaveLength(1);
    expect(Object.values((await recordOf(one.key))?.channels ?? {}).some(({ id }) => id !== undefined)).toBe(false);
  });

  test("of another app than the settings' are given up, and stop no others", async () => {
    const one = await world();
    await ask(one.key);
    await dispatch.putProvider(one.projectId as ProjectId, { bundle_id: "com.example.renamed" });
    await end(one.key);
    dispatch.pass(4 * hour);
    await tend(one.key);
    expect((await recordOf(one.key))?.channels?.[nameOf(one.app)]?.id).toBeUndefined();
    expect(channelsOf(one.app)).toHaveLength(1);
  });
});
