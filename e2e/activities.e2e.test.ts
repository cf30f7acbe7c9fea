import type { Instance } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
const main = "com.example.e2e";
const driver = "com.example.driver";
const type = "OrderAttributes";

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Activities");
  await system.putProvider(project, "apns", { bundle_ids: [driver] });
});
logOnFailure(() => system);

let ids = 0;
const newId = (): string => `order-${process.pid}-${++ids}`;

const base = (more: object) => ({
  attributes_type: type,
  attributes: { order: "4711" },
  content_state: { n: 1 },
  alert: { title: "Your order", body: "It is packed." },
  ...more,
});
const call = (route: string, activity: object, more: object = {}) =>
  project.call(route, { body: { activity }, ...more });
const put = (id: string, more: object) => call(`PUT /activities/${id}`, base(more));
const patch = (id: string, n: number, more: object = {}) =>
  call(`PATCH /activities/${id}`, { content_state: { n }, ...more });
const versionOf = (answer: Awaited<ReturnType<typeof put>>) => expectStatus(answer, 202).body.data;

/** A registered device of an iPhone that starts activities by push. */
const iphone = async (more: object = {}, phone: { updateToken?: "later"; app?: string } = {}) => {
  const { app = main, ...options } = phone;
  const { alert = "", ...tokens } = await system.simulators.phone(app, { activities: [type], ...options });
  const { device, credential } = await project.register({ token: alert, ...(app !== main && { app }), ...more });
  const store = async (key: string, token: string | null) =>
    expectStatus(
      await project.call(`PUT /devices/${device.id}/tokens/${key}`, { body: { token: { token } }, token: credential }),
      204,
    );
  const startToken = tokens[`liveactivity/${type}`] ?? "";
  await store(`liveactivity/${type}`, startToken);
  return { device, credential, store, startToken };
};

/** What cards have shown, by `n` of the state. */
const shownOn = ({ shown }: Instance) => shown.map(({ contentState }) => (contentState as { n?: number }).n);
const cardOf = async (token: string) => {
  const cards = await system.simulators.instances(token);
  expect(cards).toHaveLength(1);
  return cards[0] as Instance;
};
const shows = (token: string, n: number) =>
  eventually(async () => {
    const card = await cardOf(token);
    expect(shownOn(card).at(-1)).toBe(n);
    return card;
  });
const pushesTo = (token: string | null) => system.simulators.pushes({ token: String(token) });

/** It starts and changes before its end, also on a busy machine, and ends beside the other tests. */
let ending: { id: string; startToken: string };
test.beforeAll(async () => {
  const { device, store, startToken } = await iphone();
  const id = newId();
  const endsAt = new Date(Date.now() + 20_000).toISOString();
  versionOf(await put(id, { targets: [device.id], ends_at: endsAt }));
  await store(`activity/${id}`, (await shows(startToken, 1)).token);
  versionOf(await patch(id, 2));
  await shows(startToken, 2);
  ending = { id, startToken };
});

describe("a Live Activity", () => {
  test("starts by push, follows its state, and ends", async () => {
    const { device, store, startToken } = await iphone();
    const id = newId();
    const started = versionOf(await put(id, { targets: [device.id], kind: "order", relevance: 80 }));
    expect(started).toEqual({ id, version: 1, notification_id: expect.stringMatching(/^ntf_/) });
    const card = await shows(startToken, 1);
    expect(card).toMatchObject({
      alerts: 1,
      attributes: {
        order: "4711",
        herald: { activity: id, project_id: project.id, notification_id: started.notification_id },
      },
    });
    const [push] = await pushesTo(startToken);
    expect(push).toMatchObject({
      headers: {
        "apns-push-type": "liveactivity",
        "apns-topic": `${main}.push-type.liveactivity`,
        "apns-priority": "10",
      },
      payload: { aps: { event: "start", "input-push-token": 1, "attributes-type": type, "relevance-score": 80 } },
    });
    // A tap on the card is an open of the start.
    const { token } = (card.attributes as { herald: { token: string } }).herald;
    const opened = await project.call(`PUT /notifications/${started.notification_id}/open`, {
      body: { project_id: project.id, token },
    });
    expectStatus(opened, 204);

    await store(`activity/${id}`, card.token);
    const changed = versionOf(await patch(id, 2, { stale_at: new Date(Date.now() + 60_000).toISOString() }));
    expect(changed.version).toBe(2);
    await shows(startToken, 2);
    versionOf(await patch(id, 3, { alert: { title: "Soon", body: "Two minutes." } }));
    await shows(startToken, 3);
    // The join of the token may have been sent with this state, before the push that alerts.
    await eventually(async () => expect(await cardOf(startToken)).toMatchObject({ alerts: 2 }));
    const updates = await pushesTo(card.token);
    const priorityOf = (alerting: boolean) =>
      updates
        .filter(({ payload }) => ((payload as { aps: { alert?: unknown } }).aps.alert !== undefined) === alerting)
        .map(({ headers }) => headers["apns-priority"]);
    expect(new Set(priorityOf(true))).toEqual(new Set(["10"]));
    expect(new Set(priorityOf(false))).toEqual(new Set(["5"]));

    const shown = expectStatus(await project.call(`GET /activities/${id}`), 200).body.data;
    expect(shown).toMatchObject({ id, status: "active", version: 3, content_state: { n: 3 }, targets: [device.id] });
    const dismissAt = new Date(Date.now() + 600_000).toISOString();
    const end = { content_state: { n: 4 }, dismiss_at: dismissAt };
    const ended = versionOf(await call(`POST /activities/${id}/end`, end));
    expect(versionOf(await call(`POST /activities/${id}/end`, end))).toEqual(ended);
    expect(await shows(startToken, 4)).toMatchObject({
      state: "ended",
      dismissalDate: Math.floor(Date.parse(dismissAt) / 1000),
    });
    expectStatus(await patch(id, 5), 409);
    expectStatus(await call(`POST /activities/${id}/end`, {}), 409);
    expect((await project.final(ended.notification_id)).counts).toMatchObject({ devices: 1, accepted: 1 });
    expect(shownOn(await cardOf(startToken))).toEqual([1, 2, 3, 4]);
  });

  test("that the app starts gets its state when it is put, also if its token came before", async () => {
    const id = newId();
    const { device, store } = await iphone();
    const early = await system.simulators.startInstance(main, type);
    await store(`activity/${id}`, early.token);
    versionOf(await put(id, { targets: [device.id], start: false, alert: undefined }));
    await shows(early.token ?? "", 1);

    const other = newId();
    const { notification_id: first } = versionOf(await put(other, { targets: [device.id], start: false }));
    // A token that comes beside the first send may get it twice: by the send, and because it joined.
    await project.final(first);
    const late = await system.simulators.startInstance(main, type);
    await store(`activity/${other}`, late.token);
    await shows(late.token ?? "", 1);
    expect(await pushesTo(late.token)).toHaveLength(1);
  });

  test("reaches a device whose token came late or changed with its newest state", async () => {
    const { device, store, startToken } = await iphone({}, { updateToken: "later" });
    const id = newId();
    versionOf(await put(id, { targets: [device.id] }));
    const { id: instance } = await shows(startToken, 1);
    for (const n of [2, 3]) versionOf(await patch(id, n));
    const late = await system.simulators.rotateInstance(instance);
    await store(`activity/${id}`, late.token);
    await shows(startToken, 3);
    const rotated = await system.simulators.rotateInstance(instance);
    versionOf(await patch(id, 4));
    await store(`activity/${id}`, rotated.token);
    expect(shownOn(await shows(startToken, 4))).toEqual([1, 3, 4]);
    // A token that is sent again is nothing new.
    await store(`activity/${id}`, rotated.token);
    versionOf(await patch(id, 5));
    await shows(startToken, 5);
    expect((await pushesTo(rotated.token)).length).toBeLessThanOrEqual(3);
  });

  test("goes through FCM to the devices that FCM serves", async () => {
    await system.putProvider(project, "fcm");
    const topics = ["by-fcm"];
    const { store, startToken } = await iphone({ provider: "fcm", token: `fcm-${newId()}`, topics });
    const direct = await iphone({ topics });
    const id = newId();
    versionOf(await put(id, { targets: ["topic:by-fcm"] }));
    const card = await shows(startToken, 1);
    await shows(direct.startToken, 1);
    await store(`activity/${id}`, card.token);
    versionOf(await patch(id, 2));
    await shows(startToken, 2);
    const pushes = (await system.simulators.pushes({ provider: "fcm" })).map(({ payload }) => payload);
    expect(pushes).toContainEqual(
      expect.objectContaining({
        apns: expect.objectContaining({
          live_activity_token: card.token,
          headers: expect.objectContaining({ "apns-priority": "5" }),
        }),
      }),
    );
  });

  test("of one app of two leaves the other alone", async () => {
    const topics = ["two-apps"];
    const ofMain = await iphone({ topics });
    const ofDriver = await iphone({ topics }, { app: driver });
    const id = newId();
    versionOf(await put(id, { targets: ["topic:two-apps"], app: driver }));
    await shows(ofDriver.startToken, 1);
    expect(await system.simulators.instances(ofMain.startToken)).toEqual([]);
    const [push] = await pushesTo(ofDriver.startToken);
    expect(push?.headers["apns-topic"]).toBe(`${driver}.push-type.liveactivity`);
  });

  test("does not start where it is already, and not where it has no target", async () => {
    const topics = ["held"];
    const held = await iphone({ topics });
    const stranger = await iphone();
    const id = newId();
    const own = await system.simulators.startInstance(main, type);
    const guessed = await system.simulators.startInstance(main, type);
    await held.store(`activity/${id}`, own.token);
    await stranger.store(`activity/${id}`, guessed.token);
    versionOf(await put(id, { targets: ["topic:held"] }));
    await shows(own.token ?? "", 1);
    versionOf(await patch(id, 2));
    await shows(own.token ?? "", 2);
    expect(await system.simulators.instances(held.startToken)).toEqual([]);
    expect(await pushesTo(guessed.token)).toEqual([]);
    const read = (device: string, token: string) => project.call(`GET /devices/${device}/activities/${id}`, { token });
    expect((await read(held.device.id, held.credential)).body.data).toMatchObject({
      version: 2,
      content_state: { n: 2 },
    });
    expectStatus(await read(stranger.device.id, stranger.credential), 404);
    expectStatus(await read(held.device.id, stranger.credential), 403);
  });
});

describe("writes", () => {
  test("of the same body are one, of another body a conflict", async () => {
    const { device, startToken } = await iphone();
    const id = newId();
    const first = versionOf(await put(id, { targets: [device.id] }));
    expect(versionOf(await put(id, { targets: [device.id] }))).toEqual(first);
    expectStatus(await put(id, { targets: [device.id], content_state: { n: 9 } }), 409);
    await shows(startToken, 1);
    versionOf(await patch(id, 2));
    expect(versionOf(await put(id, { targets: [device.id] }))).toEqual(first);
    expect((await pushesTo(startToken)).length).toBe(1);
  });

  test("with a lower sequence write nothing, with the last one the same version", async () => {
    const { device } = await iphone();
    const id = newId();
    versionOf(await put(id, { targets: [device.id] }));
    const second = versionOf(await patch(id, 20, { sequence: 20 }));
    expect(versionOf(await patch(id, 20, { sequence: 20 }))).toEqual(second);
    expect(versionOf(await patch(id, 10, { sequence: 10 }))).toEqual(second);
    expect((await project.call(`GET /activities/${id}`)).body.data).toMatchObject({
      version: 2,
      content_state: { n: 20 },
    });
  });

  test("are refused when they come too fast, but for the end", async () => {
    const { device } = await iphone();
    const id = newId();
    versionOf(await put(id, { targets: [device.id] }));
    // At once, because a machine that takes a second for each would be within the limit.
    const answers = await Promise.all(Array.from({ length: 16 }, (_, at) => patch(id, at + 2)));
    const refused = answers.find(({ status }) => status === 429);
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    versionOf(await call(`POST /activities/${id}/end`, {}));
  });

  test("that are wrong are refused with the field, and nothing is pushed", async () => {
    const { device, credential, store, startToken } = await iphone();
    const id = newId();
    const target = { targets: [device.id] };
    const wrong: [object, string][] = [
      [{ alert: undefined }, "activity.alert"],
      [{ attributes: { herald: 1 } }, "activity.attributes.herald"],
      [{ ends_at: new Date(Date.now() + 9 * 3_600_000).toISOString() }, "activity.ends_at"],
      [{ ends_at: new Date(Date.now() - 1_000).toISOString() }, "activity.ends_at"],
      [{ content_state: { fill: "x".repeat(4_096) } }, "activity.content_state"],
      [{ content_state: { fill: "x".repeat(3_900) } }, "activity"],
      [{ targets: Array.from({ length: 101 }, (_, at) => `user:u${at}`) }, "activity.targets"],
      [{ content_state: 1 }, "activity.content_state"],
      [{ state: {} }, "activity"],
    ];
    for (const [more, field] of wrong) {
      const { body } = expectStatus(await put(id, { ...target, ...more }), 422);
      expect(body.errors.join("\n"), JSON.stringify(more).slice(0, 80)).toContain(field);
    }
    const raw = JSON.stringify({ activity: base(target) }).replace('"n":1', '"__proto__":{"n":1}');
    expectStatus(await project.call(`PUT /activities/${id}`, { body: raw }), 422);
    for (const bad of ["__proto__", "a.b", "a%0d%0ab", "x".repeat(65), "%2e%2e"])
      expect((await put(bad, target)).status, bad).toBeGreaterThanOrEqual(400);
    expectStatus(await patch(id, 1), 404);
    expectStatus(await call(`POST /activities/${id}/end`, {}), 404);
    expectStatus(await project.call(`GET /activities/${id}`), 404);
    expectStatus(
      await project.call(`PUT /activities/${id}`, { body: { activity: base(target) }, token: credential }),
      403,
    );
    expectStatus(
      await project.call("POST /notifications", { body: { notification: { ...target, push_type: "liveactivity" } } }),
      422,
    );
    const bad = { token: { token: "ab".repeat(32) } };
    for (const path of ["liveactivity", "activity", "activity/a.b", "activity/__proto__"])
      expectStatus(
        await project.call(`PUT /devices/${device.id}/tokens/${path}`, { body: bad, token: credential }),
        422,
      );
    // Another device's token is not moved.
    const other = await iphone();
    const card = await system.simulators.startInstance(main, type);
    await store(`activity/${id}`, card.token);
    const taken = await project.call(`PUT /devices/${other.device.id}/tokens/activity/${id}`, {
      body: { token: { token: card.token } },
      token: other.credential,
    });
    expectStatus(taken, 409);
    const elsewhere = await system.project("Elsewhere");
    expectStatus(await elsewhere.call(`GET /activities/${id}`), 404);
    expect([...(await pushesTo(startToken)), ...(await pushesTo(card.token))]).toEqual([]);
  });

  test("are found by push type, kind and label, and counted once", async () => {
    const { device, startToken, store } = await iphone();
    const id = newId();
    versionOf(await put(id, { targets: [device.id], kind: "parcel", labels: { carrier: "dhl" } }));
    const card = await shows(startToken, 1);
    await store(`activity/${id}`, card.token);
    versionOf(await patch(id, 2));
    await shows(startToken, 2);
    await eventually(async () => {
      const { data } = (await project.call("GET /notifications?push_type=liveactivity&kind=parcel")).body;
      const events = data.flatMap(({ activity, status }: { activity?: { event: string }; status: string }) =>
        status === "completed" ? [activity?.event] : [],
      );
      expect(events).toEqual(expect.arrayContaining(["start", "update"]));
      const counted = (await project.call("GET /stats?by=push_type")).body.data.groups;
      expect(counted).toContainEqual(expect.objectContaining({ value: "liveactivity" }));
    });
  });
});

test("an activity ends at its time, once", async () => {
  const { id, startToken } = ending;
  await eventually(async () => expect(await cardOf(startToken)).toMatchObject({ state: "ended" }), {
    timeoutMs: 40_000,
  });
  expect(shownOn(await cardOf(startToken))).toEqual([1, 2, 2]);
  await eventually(async () =>
    expect(expectStatus(await project.call(`GET /activities/${id}`), 200).body.data).toMatchObject({
      ...{ status: "ended", version: 3, content_state: { n: 2 } },
    }),
  );
  expectStatus(await patch(id, 3), 409);
});
