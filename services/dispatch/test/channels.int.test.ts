import { countMessages, openBucket, publish, publishEvent, sendRequest } from "@herald/bus";
import {
  type ActivityKey,
  ActivityRecord,
  activityKey,
  activityRequests,
  JoinActivityV1,
  type ProjectId,
  SendV1,
} from "@herald/contracts";
import { broadcastDue, changeActivity, endActivity, firstSends, newActivityRecord, newestSend } from "@herald/rules";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
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
const requestsOf = (app: string, what: "channels" | "broadcasts" = "channels") =>
  dispatch.simulators.pushes({ token: `${what}/${app}` });
const change = (key: ActivityKey) =>
  write(key, (record) => {
    const changed = changeActivity(record, { content_state: { n: record.version + 1 } }, dispatch.now());
    if (changed.kind !== "written") throw new Error(changed.kind);
    return changed.record;
  });
/** Publishes the newest version as the gateway does. `version`: that of the message for its channels, if not its own. */
const publishVersion = async (key: ActivityKey, version?: number) => {
  const record = await recordOf(key);
  const [send, due] = [record && newestSend(key, record), record && broadcastDue(key, record)];
  if (!send || !due) throw new Error("there is no version for a channel");
  await publish(dispatch.bus, SendV1, send, { id: send.notificationId });
  await publish(dispatch.bus, JoinActivityV1, { ...due.data, version: version ?? due.data.version }, { id: due.id });
};
const channelsOf = (app: string) => dispatch.simulators.channels.list().filter((channel) => channel.app === app);
const addForeign = (app: string) =>
  fetch(`${dispatch.simulators.control.url}/apns/channels`, { method: "POST", body: JSON.stringify({ app }) });
let tended = 0;
/** Lets dispatch do what is due for an activity, and resolves when it is done. */
const tend = async (key: ActivityKey) => {
  const message = { projectId: key.projectId, activityId: key.id };
  await publish(dispatch.bus, JoinActivityV1, message, { id: `tend-${++tended}` });
  await settled(key);
};
const settled = ({ projectId, id: activityId }: ActivityKey) =>
  eventually(async () => {
    // From a work queue a message goes when it is settled.
    expect(await countMessages(dispatch.bus, "PUSH_CMD", JoinActivityV1.subject({ projectId, activityId }))).toBe(0);
  });
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

  test("has one channel, if two processes ask for it", async () => {
    const { app, key } = await world();
    const { config, now } = dispatch;
    const beside = createApp(config, { now, sweepEveryMs: 200 });
    await beside.start();
    try {
      dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${app}`, delayMs: 300 }]);
      const answers = await Promise.all(Array.from({ length: 16 }, () => ask(key)));
      expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(channelsOf(app).map(({ id }) => id)));
      expect(channelsOf(app)).toHaveLength(1);
    } finally {
      await beside.stop();
    }
  });

  test("asks once where Apple refuses or limits it", async () => {
    const one = await world();
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${one.app}`, status: 429 }]);
    expect((await start(one)).pushes).toMatchObject([{ payload: { aps: { "input-push-token": 1 } } }]);
    expect(await Promise.all([ask(one.key), ask(one.key)])).toEqual([{}, {}]);
    // The list, and the channel.
    expect(requestsOf(one.app)).toHaveLength(2);
    expect((await recordOf(one.key))?.channels?.[nameOf(one.app)]?.problem).toBe("TooManyRequests");
  });

  test("has tokens for further apps once the activity has eight channels", async () => {
    const { app, key } = await world();
    const others = Array.from({ length: 8 }, (_, n) => [
      `com.example.other-${n}/sandbox`,
      { askedAt: 0, problem: "x" },
    ]);
    await write(key, (record) => ({ ...record, channels: Object.fromEntries(others) }));
    expect(await ask(key)).toEqual({});
    expect(requestsOf(app)).toEqual([]);
  });

  test("shows a state that was written while Apple made the channel", async () => {
    const one = await world();
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${one.app}`, delayMs: 500 }]);
    const started = start(one);
    await eventually(() => expect(channelsOf(one.app)).toHaveLength(1));
    await change(one.key);
    const [push] = (await started).pushes;
    expect(push?.payload).toMatchObject({
      aps: { "content-state": { n: 2 }, "input-push-channel": expect.any(String) },
    });
  });

  test("starts nothing if the activity ends while Apple makes the channel", async () => {
    const one = await world();
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `channels/${one.app}`, delayMs: 500 }]);
    const started = start(one);
    await eventually(() => expect(channelsOf(one.app)).toHaveLength(1));
    await end(one.key);
    expect((await started).counts).toMatchObject({ skipped: 1 });
    dispatch.pass(4 * hour);
    await tend(one.key);
    expect(channelsOf(one.app)).toEqual([]);
  });
});

describe("a version", () => {
  const shown = (n: number) => ({ aps: { "content-state": { n } } });
  const sentOf = async (key: ActivityKey, app: string) => (await recordOf(key))?.channels?.[nameOf(app)]?.sent;

  test("is broadcast later if its message finds an older record", async () => {
    const { app, key } = await world();
    const { id } = await ask(key);
    await change(key);
    await publishVersion(key, 3);
    await settled(key);
    expect(requestsOf(app, "broadcasts")).toEqual([]);
    await change(key);
    await publishVersion(key);
    await settled(key);
    expect(requestsOf(app, "broadcasts")).toMatchObject([{ headers: { "apns-channel-id": id }, payload: shown(3) }]);
  });

  test("goes again if an older one was under way at the same time", async () => {
    const { app, key } = await world();
    const { id = "" } = await ask(key);
    const card = { app, attributesType: "Match", channel: id };
    await fetch(`${dispatch.simulators.control.url}/apns/instances`, { method: "POST", body: JSON.stringify(card) });
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: `broadcasts/${app}`, times: 1, delayMs: 1_500 }]);
    await change(key);
    await publishVersion(key);
    await eventually(() => expect(dispatch.simulators.instances.list()).toMatchObject([{ arrived: [{}] }]));
    await change(key);
    await publishVersion(key);
    await eventually(async () => expect(await sentOf(key, app)).toBe(3));
    // The answer about the older one comes last, as if Apple had got it last.
    await eventually(async () => expect(await sentOf(key, app)).toBe(2));
    await tend(key);
    expect(await sentOf(key, app)).toBe(3);
    expect(requestsOf(app, "broadcasts").map(({ payload }) => payload)).toMatchObject([3, 2, 3].map(shown));
  });
});

test("the channels of a deleted project are deleted by any replica, and a failure of one stops no other", async () => {
  const one = await world();
  for (let n = 0; n < 3; n++) await addForeign(one.app);
  const [first, second, third] = channelsOf(one.app).map(({ id }) => id);
  if (third === undefined) throw new Error("the simulator has no channels");
  // Another process has made them, which this one has never heard of.
  await write(one.key, (record) => ({
    ...record,
    channels: {
      [nameOf(one.app)]: { askedAt: 0, id: first },
      [`${one.app}/production`]: { askedAt: 0, left: { id: third, at: 0 } },
      [`${one.app}-other/sandbox`]: { askedAt: 0, id: second },
    },
  }));
  const at = new Date();
  await publishEvent(dispatch.bus, {
    id: `${one.projectId}/deleted`,
    event: "ProjectDeletedV1",
    subject: one.projectId,
    at,
    data: { project_id: one.projectId, at: at.toISOString() },
  });
  await eventually(async () => expect(await recordOf(one.key)).toBeUndefined());
  // That of an app that the settings do not name.
  expect(channelsOf(one.app).map(({ id }) => id)).toEqual([second]);
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

  test("stay in the record until Apple has deleted them", async () => {
    const one = await world();
    await ask(one.key);
    await end(one.key);
    dispatch.pass(4 * hour);
    const stays = async () => {
      await tend(one.key);
      expect((await recordOf(one.key))?.channels?.[nameOf(one.app)]?.id).toBeDefined();
      expect(channelsOf(one.app)).toHaveLength(1);
    };
    dispatch.simulators.script([
      { provider: "apns", tokenPrefix: `channels/${one.app}`, status: 403, reason: "ExpiredProviderToken" },
    ]);
    await stays();
    dispatch.simulators.script([]);
    await dispatch.putProvider(one.projectId as ProjectId, { bundle_id: "com.example.renamed" });
    dispatch.pass(1_000);
    await stays();
    await dispatch.putProvider(one.projectId as ProjectId, { bundle_id: one.app });
    dispatch.pass(1_000);
    await tend(one.key);
    expect(channelsOf(one.app)).toEqual([]);
    // As if the answer had been lost.
    await write(one.key, (record) => ({
      ...record,
      channels: { [nameOf(one.app)]: { askedAt: 0, id: "bm9uZSBzdWNo" } },
    }));
    await tend(one.key);
    expect((await recordOf(one.key))?.channels?.[nameOf(one.app)]?.id).toBeUndefined();
  });
});
