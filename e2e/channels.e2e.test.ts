import type { Instance, Push } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
const type = "MatchAttributes";
let apps = 0;
/** Each test has an app of its own, so that it knows all of its channels. */
const newApp = () => `com.example.channels-${process.pid}-${++apps}`;
const settled: string[] = Array.from({ length: 12 }, newApp);

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Channels");
  await system.putProvider(project, "apns", { bundle_ids: settled });
});
logOnFailure(() => system);

let ids = 0;
const newId = (): string => `match-${process.pid}-${++ids}`;
const call = (route: string, activity: object, of = project) => of.call(route, { body: { activity } });
const put = (id: string, app: string, more: object, of = project) => {
  const state = { content_state: { n: 1 }, alert: { title: "Match", body: "It begins." } };
  return call(
    `PUT /activities/${id}`,
    { attributes_type: type, attributes: {}, via: "channel", app, ...state, ...more },
    of,
  );
};
const patch = (id: string, n: number, more: object = {}, of = project) =>
  call(`PATCH /activities/${id}`, { content_state: { n }, ...more }, of);
const versionOf = (answer: Awaited<ReturnType<typeof put>>) => expectStatus(answer, 202).body.data;
const read = async (id: string, of = project) => expectStatus(await of.call(`GET /activities/${id}`), 200).body.data;

/** A device that starts activities by push; `channels`: what its app says of the start token. */
const iphone = async (
  app: string,
  more: object = {},
  options: { ios?: string; channels?: boolean } = {},
  of = project,
) => {
  const { ios = "26.0", channels = true } = options;
  const { alert = "", ...tokens } = await system.simulators.phone(app, { ios, activities: [type] });
  const { device, credential } = await of.register({ token: alert, app, ...more });
  const store = async (key: string, token: string | null, flag: object = {}) =>
    expectStatus(
      await of.call(`PUT /devices/${device.id}/tokens/${key}`, {
        body: { token: { token, ...flag } },
        token: credential,
      }),
      204,
    );
  const startToken = tokens[`liveactivity/${type}`] ?? "";
  await store(`liveactivity/${type}`, startToken, channels ? { channels } : {});
  return { device, credential, store, startToken };
};

const shownOn = ({ shown }: Instance) => shown.map(({ contentState }) => (contentState as { n?: number }).n);
const shows = (token: string, n: number) =>
  eventually(async () => {
    const cards = await system.simulators.instances(token);
    expect(cards).toHaveLength(1);
    expect(shownOn(cards[0] as Instance).at(-1)).toBe(n);
    return cards[0] as Instance;
  });
const broadcastsTo = (app: string): Promise<Push[]> => system.simulators.pushes({ token: `broadcasts/${app}` });
/** In their order. A broadcast may be repeated, as after a lost answer. */
const broadcastStates = async (app: string): Promise<number[]> => [...new Set((await broadcastsTo(app)).map(stateOf))];
const stateOf = ({ payload }: Push) => (payload as { aps: { "content-state": { n: number } } }).aps["content-state"].n;

describe("an activity via a channel", () => {
  test("starts with it, and each version is one request for all that follow it, beside the tokens of the rest", async () => {
    const app = settled[0] ?? "";
    const topics = ["match-1"];
    const followers = await Promise.all([1, 2, 3].map(() => iphone(app, { topics })));
    const old = await iphone(app, { topics }, { ios: "17.4", channels: false });
    const id = newId();
    const started = versionOf(await put(id, app, { targets: ["topic:match-1"] }));
    const cards = await Promise.all(followers.map(({ startToken }) => shows(startToken, 1)));
    const [channel, ...others] = await system.simulators.channels(app);
    expect(others).toEqual([]);
    expect(new Set(cards.map((card) => card.channel))).toEqual(new Set([channel?.id]));
    const [push] = await system.simulators.pushes({ token: followers[0]?.startToken ?? "" });
    expect(push).toMatchObject({ payload: { aps: { "input-push-channel": channel?.id } } });
    expect(push).not.toHaveProperty("payload.aps.input-push-token");
    // Before iOS 18 a channel would prevent the start.
    const card = await shows(old.startToken, 1);
    expect([card.channel, card.token]).toEqual([undefined, expect.any(String)]);
    await old.store(`activity/${id}`, card.token);
    expect((await project.final(started.notification_id)).counts).toMatchObject({ devices: 4, accepted: 4 });

    const second = versionOf(await patch(id, 2, { alert: { title: "Goal", body: "1:0" } }));
    for (const { startToken } of [...followers, old]) await shows(startToken, 2);
    const alerts = await Promise.all(followers.map(async ({ startToken }) => (await shows(startToken, 2)).alerts));
    expect(alerts).toEqual([2, 2, 2]);
    const ended = { content_state: { n: 3 } };
    versionOf(await call(`POST /activities/${id}/end`, ended));
    for (const { startToken } of [...followers, old])
      expect(await shows(startToken, 3)).toMatchObject({ state: "ended" });

    expect(await broadcastStates(app)).toEqual([2, 3]);
    expect((await broadcastsTo(app))[0]).toMatchObject({
      headers: { "apns-channel-id": channel?.id, "apns-push-type": "liveactivity", "apns-priority": "10" },
    });
    // Only the device with a token is counted.
    expect((await project.final(second.notification_id)).counts).toMatchObject({ devices: 1, accepted: 1 });
    await eventually(async () =>
      expect((await read(id)).channels).toEqual([{ app, environment: "sandbox", version: 3 }]),
    );
    const trace = await project.call(`GET /notifications/${second.notification_id}/devices/${followers[0]?.device.id}`);
    const { explanation } = expectStatus(trace, 200).body.data;
    expect(explanation.join(" ")).toContain("by a broadcast, last version 3. Apple gives no result per device.");
    // The other device has a token, and a result.
    const own = await project.call(`GET /notifications/${second.notification_id}/devices/${old.device.id}`);
    expect(expectStatus(own, 200).body.data.explanation.join(" ")).not.toContain("broadcast");
  });

  test("has a channel for each environment that it meets", async () => {
    const app = settled[1] ?? "";
    const topics = ["match-2"];
    const one = await iphone(app, { topics });
    const other = await iphone(app, { topics, environment: "production" });
    const id = newId();
    versionOf(await put(id, app, { targets: ["topic:match-2"] }));
    const cards = [await shows(one.startToken, 1), await shows(other.startToken, 1)];
    expect(new Set(cards.map(({ channel }) => channel))).toEqual(
      new Set((await system.simulators.channels(app)).map((channel) => channel.id)),
    );
    versionOf(await patch(id, 2));
    for (const { startToken } of [one, other]) await shows(startToken, 2);
    const reached = (await broadcastsTo(app)).map(({ headers }) => headers["apns-channel-id"]);
    expect(new Set(reached)).toEqual(new Set(cards.map(({ channel }) => channel)));
    const environments = (await read(id)).channels.map(({ environment }: { environment: string }) => environment);
    expect(environments.toSorted()).toEqual(["production", "sandbox"]);
  });

  test("has tokens alone where Apple refuses a channel, and says why", async () => {
    const app = settled[2] ?? "";
    await system.simulators.makeChannels(app, 10_000);
    const { device, store, startToken } = await iphone(app);
    const id = newId();
    const started = versionOf(await put(id, app, { targets: [device.id] }));
    const card = await shows(startToken, 1);
    expect(card.channel).toBeUndefined();
    await store(`activity/${id}`, card.token);
    versionOf(await patch(id, 2));
    await shows(startToken, 2);
    expect((await read(id)).channels).toEqual([{ app, environment: "sandbox", problem: "CannotCreateChannelConfig" }]);
    const trace = await project.call(`GET /notifications/${started.notification_id}/devices/${device.id}`);
    expect(expectStatus(trace, 200).body.data.explanation.join(" ")).toContain("`CannotCreateChannelConfig`");
    expect(await system.simulators.channels(app)).toHaveLength(10_000);
  });

  /** An activity that the app starts itself, on so many phones that follow the channel that it reads. */
  const startedByApp = async (app: string, followers: number, more: object = {}) => {
    const { device, credential } = await iphone(app);
    const id = newId();
    versionOf(await put(id, app, { targets: [device.id], start: false, alert: undefined, ...more }));
    const own = await project.call(`GET /devices/${device.id}/activities/${id}`, { token: credential });
    const { channel_id: channel } = expectStatus(own, 200).body.data;
    expect((await system.simulators.channels(app)).map((one) => one.id)).toEqual([channel]);
    await system.simulators.startInstance(app, type, { channel, count: followers });
    const cards = async () => (await system.simulators.instances()).filter((card) => card.channel === channel);
    return { id, cards };
  };

  test("that the app starts is followed by the channel that it reads", async () => {
    const app = settled[3] ?? "";
    // 100,000 phones are possible; fewer show the same.
    const followers = Number(process.env.HERALD_E2E_FOLLOWERS ?? 500);
    const { id, cards } = await startedByApp(app, followers);
    versionOf(await patch(id, 2));
    await eventually(async () => {
      const states = (await cards()).map((card) => shownOn(card).at(-1));
      expect([states.length, new Set(states)]).toEqual([followers, new Set([2])]);
    });
    expect(await broadcastsTo(app)).toHaveLength(1);
  });

  test("ends at its time on the devices of its channel", async () => {
    const app = settled[9] ?? "";
    // Only the app's read must come before it: a channel keeps its last message for those that follow later.
    const endsAt = new Date(Date.now() + 20_000).toISOString();
    const { cards } = await startedByApp(app, 2, { ends_at: endsAt });
    await eventually(async () => expect((await cards()).map(({ state }) => state)).toEqual(["ended", "ended"]), {
      timeoutMs: 60_000,
    });
    expect(await broadcastStates(app)).toEqual([1]);
  });

  test("waits while its project is paused, and does not hold up another project", async () => {
    const app = settled[4] ?? "";
    const held = await system.project("Paused");
    await system.putProvider(held, "apns", { bundle_id: app });
    const { device, startToken } = await iphone(app, {}, {}, held);
    const id = newId();
    versionOf(await put(id, app, { targets: [device.id] }, held));
    await shows(startToken, 1);
    expectStatus(await system.admin(`POST /projects/${held.id}/pause`, { body: { reason: "test" } }), 200);
    for (const n of [2, 3]) versionOf(await patch(id, n, {}, held));

    const other = settled[5] ?? "";
    const free = await iphone(other);
    const running = newId();
    versionOf(await put(running, other, { targets: [free.device.id] }));
    await shows(free.startToken, 1);
    versionOf(await patch(running, 2));
    await shows(free.startToken, 2);
    expect(await broadcastsTo(app)).toEqual([]);

    expectStatus(await system.admin(`POST /projects/${held.id}/resume`, { body: {} }), 200);
    await shows(startToken, 3);
    expect(await broadcastStates(app)).toEqual([3]);
  });

  test("loses its channel with its project", async () => {
    const app = settled[6] ?? "";
    const [foreign] = await system.simulators.makeChannels(app, 1);
    const gone = await system.project("Gone");
    await system.putProvider(gone, "apns", { bundle_id: app });
    const { device, startToken } = await iphone(app, {}, {}, gone);
    versionOf(await put(newId(), app, { targets: [device.id] }, gone));
    await shows(startToken, 1);
    expect(await system.simulators.channels(app)).toHaveLength(2);
    expectStatus(await system.admin(`DELETE /projects/${gone.id}`), 204);
    await eventually(async () =>
      expect((await system.simulators.channels(app)).map((one) => one.id)).toEqual([foreign]),
    );
  });
});

describe("a broadcast", () => {
  test("is tried again while Apple fails, with the newest state", async () => {
    const app = settled[7] ?? "";
    const { device, startToken } = await iphone(app);
    const id = newId();
    versionOf(await put(id, app, { targets: [device.id] }));
    await shows(startToken, 1);
    await system.simulators.script([{ tokenPrefix: `broadcasts/${app}`, times: 3, status: 503 }]);
    for (const n of [2, 3]) versionOf(await patch(id, n));
    await shows(startToken, 3);
    await system.simulators.script([]);
  });

  test("that Apple refuses is not repeated, and the activity says so", async () => {
    const app = settled[8] ?? "";
    const { device, startToken } = await iphone(app);
    const id = newId();
    versionOf(await put(id, app, { targets: [device.id] }));
    await shows(startToken, 1);
    const rule = { tokenPrefix: `broadcasts/${app}`, times: 1, status: 400, reason: "ChannelNotRegistered" };
    await system.simulators.script([rule]);
    versionOf(await patch(id, 2));
    await eventually(async () =>
      expect((await read(id)).channels).toEqual([
        { app, environment: "sandbox", version: 2, problem: "ChannelNotRegistered" },
      ]),
    );
    versionOf(await patch(id, 3));
    await shows(startToken, 3);
    await eventually(async () =>
      expect((await read(id)).channels).toEqual([{ app, environment: "sandbox", version: 3 }]),
    );
    expect(await broadcastsTo(app)).toHaveLength(2);
  });
});
