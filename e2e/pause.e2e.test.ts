import { Herald, type HeraldEvent } from "@herald/client";
import { eventually, expectStatus, type HttpAnswer, request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { apnsToken, type Content, type Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";
import { startWebhookReceiver, type WebhookReceiver } from "./harness/webhook-receiver.ts";

/** Pushes in flight: several chunks of a small broadcast, one after another. */
const inFlight = 50;
const slow = "b0b0";

let system: System;
let receiver: WebhookReceiver;
let project: Project;
let operator: string;
beforeAll(async () => {
  receiver = await startWebhookReceiver(() => 204);
  system = await startSystem({ env: { HERALD_DISPATCH_IN_FLIGHT: String(inFlight) } });
  project = await system.project("Paused");
  operator = (await system.operator({ name: "Maria", role: "operator" })).token;
});
afterEach(async () => {
  await system.simulators.script([]);
  for (const path of [`/projects/${project.id}`, ""]) expectStatus(await system.admin(`POST ${path}/resume`), 200);
});
afterAll(async () => {
  await system?.stop();
  await receiver?.stop();
});
logOnFailure(() => system);

const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
const arrived = (id: string) => eventually(async () => expect(await pushesOf(id)).not.toEqual([]));
const pauseProject = async (body?: object): Promise<HttpAnswer> =>
  expectStatus(await system.admin(`POST /projects/${project.id}/pause`, { token: operator, body }), 200);
const resumeProject = async () =>
  expectStatus(await system.admin(`POST /projects/${project.id}/resume`, { token: operator }), 200);

/** An ordinary send of another project, which ends after those before it would have been sent. */
const elsewhere = async () => {
  const other = await system.project("Not paused");
  const { device } = await other.register();
  const { id } = await other.send({ title: "Hello", targets: [device.id] });
  expect((await other.final(id)).counts.accepted).toBe(1);
};

test("a broadcast stops when its token pauses it, and is resumed, each device once", async () => {
  const devices = await seed(system, project, 400, { prefix: slow, topics: ["crowd"] });
  await system.simulators.script([{ tokenPrefix: slow, delayMs: 300 }]);
  const { id } = await project.send({ title: "To everyone", targets: ["topic:crowd"] });
  await arrived(id);
  const body = { reason: "the wrong link" };
  const answer = expectStatus(await project.call(`POST /notifications/${id}/pause`, { body }), 200);
  const answeredAt = Date.now();
  const { body: tokens } = await system.admin(`GET /projects/${project.id}/tokens`);
  const paused = { by: { id: tokens.data[0].id }, reason: body.reason };
  expect(answer.body.data).toMatchObject({ id, status: "paused", paused });
  // Everything in flight has been answered then.
  await eventually(async () => {
    const { counts } = await project.notification(id);
    expect(counts.accepted).toBe((await pushesOf(id)).length);
  });
  await elsewhere();
  const sent = await pushesOf(id);
  expect(sent.length).toBeLessThan(devices.length);
  expect(sent.filter(({ at }) => Date.parse(at) > answeredAt).length).toBeLessThanOrEqual(inFlight);
  expect(await project.notification(id)).toMatchObject({ status: "paused", paused });
  const listed = await project.call("GET /notifications?status=paused");
  expect(listed.body.data.map((one: { id: string }) => one.id)).toEqual([id]);

  const resumed = expectStatus(await project.call(`POST /notifications/${id}/resume`), 200).body.data;
  expect([resumed.status, resumed.paused]).toEqual(["sending", undefined]);
  expect(await project.final(id)).toMatchObject({ status: "completed", counts: { accepted: devices.length } });
  expect((await pushesOf(id)).map(deviceOf).sort()).toEqual(devices.map((device) => device.id).sort());
  const late = await project.call(`POST /notifications/${id}/pause`);
  expect([late.status, late.body.type]).toEqual([409, expect.stringContaining("notification-final")]);
});

describe("a project that an operator pauses", () => {
  test("sends nothing until it is resumed, and everything else goes on", async () => {
    const before = await project.register({ topics: ["news"] });
    const { data } = (await pauseProject({ reason: "an outage" })).body;
    const paused = { by: { name: "Maria" }, reason: "an outage", of: "project" };
    expect(data).toMatchObject({ id: project.id, paused });
    const test = await system.admin(`POST /projects/${project.id}/providers/apns/test`, {
      body: { token: apnsToken() },
    });
    expect([test.status, test.body.type]).toEqual([409, expect.stringContaining("project-paused")]);

    const registered = await project.register({ topics: ["news"] });
    const sends = [
      await project.send({ title: "To one", targets: [registered.device.id] }),
      await project.send({ title: "To all", targets: ["topic:news"] }),
    ];
    await elsewhere();
    for (const { id } of sends) {
      expect(await pushesOf(id)).toEqual([]);
      expect((await project.notification(id)).completed_at).toBeUndefined();
    }
    expect((await system.admin(`GET /projects/${project.id}`)).body.data).toMatchObject({ paused });

    await resumeProject();
    const counts = await Promise.all(sends.map(async ({ id }) => (await project.final(id)).counts.accepted));
    expect(counts).toEqual([1, 2]);
    expect((await pushesOf(sends[1]?.id ?? "")).map(deviceOf).sort()).toEqual(
      [before.device.id, registered.device.id].sort(),
    );
  });

  test("counts an open of what was sent before", async () => {
    const { device } = await project.register();
    const { id } = await project.send({ title: "Open me", targets: [device.id] });
    await project.final(id);
    await pauseProject();
    const [push] = await pushesOf(id);
    if (!push) throw new Error("nothing was sent");
    const { project_id, token } = payloadOf(push);
    const body = { project_id, token };
    expectStatus(await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, { body }), 204);
    await eventually(async () => expect((await project.notification(id)).counts.opened).toBe(1));
  });

  test("takes no further recipients of an upload, which goes on after its stored lines", async () => {
    const user = "a-customer";
    const { device } = await project.register({ user_id: user });
    const { id } = await project.send({
      ...{ title: "No. {{ n }}", variables: { n: "" }, recipients: { upload: "user" } },
    } as unknown as Content);
    const { notifications } = new Herald({ url: system.gateway, token: project.token, maxRetries: 0 });
    const stored = async () => (await notifications.recipients(id)).lines_stored;
    const line = (target: string, n: number) => `${JSON.stringify({ target: `user:${target}`, variables: { n } })}\n`;
    const file = Array.from({ length: 5_000 }, (_, at) => line(at === 4_999 ? user : `unknown-${at}`, at));
    const upload = async (body: string | ReadableStream, query = "") => {
      const response = await fetch(`${system.gateway}/api/v1/notifications/${id}/recipients${query}`, {
        ...{ method: "PUT", body, duplex: "half" },
        headers: { authorization: `Bearer ${project.token}`, "content-type": "application/x-ndjson" },
      } as RequestInit);
      return { status: response.status, body: (await response.json()) as { type: string } };
    };
    const refused = await upload(
      new ReadableStream({
        start: (controller) => controller.enqueue(Buffer.from(file.slice(0, 2_500).join(""))),
        pull: async (controller) => {
          await eventually(async () => expect(await stored()).toBeGreaterThan(0));
          await pauseProject();
          controller.enqueue(Buffer.from(file.slice(2_500).join("")));
          controller.close();
        },
      }),
    );
    expect([refused.status, refused.body.type]).toEqual([409, expect.stringContaining("project-paused")]);
    const at = await stored();
    expect(at).toBeGreaterThan(0);
    expect(at).toBeLessThan(file.length);

    await resumeProject();
    await eventually(async () => expect((await upload(file.join(""), `?after_line=${at}`)).status).toBe(200));
    expect(await project.final(id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
    expect((await pushesOf(id)).map(deviceOf)).toEqual([device.id]);
  });

  test("is resumed by itself when the end of the pause has come", async () => {
    const { device } = await project.register();
    await pauseProject({ until: new Date(Date.now() + 2_000).toISOString() });
    const { id } = await project.send({ title: "Later", targets: [device.id] });
    expect((await project.notification(id)).counts.accepted).toBe(0);
    expect((await project.final(id)).counts.accepted).toBe(1);
    expect((await system.admin(`GET /projects/${project.id}`)).body.data).not.toHaveProperty("paused");
  });
});

test("all projects wait while an admin pauses them", async () => {
  const other = await system.project("Another");
  const sends: [Project, string][] = [];
  expect((await system.admin("POST /pause", { token: operator })).status).toBe(403);
  expectStatus(await system.admin("POST /pause", { body: { reason: "an attack" } }), 200);
  for (const one of [project, other]) {
    const { device } = await one.register();
    sends.push([one, (await one.send({ title: "Wait", targets: [device.id] })).id]);
    expect((await system.admin(`GET /projects/${one.id}`)).body.data.paused).toMatchObject({ of: "installation" });
  }
  expect((await system.admin("GET /installation")).body.data.paused).toMatchObject({ reason: "an attack" });
  for (const [one, id] of sends) {
    expect(await pushesOf(id)).toEqual([]);
    expect((await one.notification(id)).completed_at).toBeUndefined();
  }
  expectStatus(await system.admin("POST /resume"), 200);
  for (const [one, id] of sends) expect((await one.final(id)).counts.accepted).toBe(1);
});

test("each pause and each resume has one event, in the stream and for webhooks", async () => {
  const told = await system.project("Told");
  const path = `/${told.id}`;
  const body = { webhook: { url: receiver.urlOf(path) } };
  receiver.expectSecret(path, expectStatus(await told.call("POST /webhooks", { body }), 201).body.secret);
  const { device } = await told.register();
  const { id } = await told.send({
    ...{ title: "Tomorrow", targets: [device.id], send_at: new Date(Date.now() + 86_400_000).toISOString() },
  });
  const since = new Date();
  for (const verb of ["pause", "pause", "resume", "resume"]) {
    const reason = verb === "pause" ? { body: { reason: "why" } } : {};
    expectStatus(await told.call(`POST /notifications/${id}/${verb}`, reason), 200);
    expectStatus(await system.admin(`POST /projects/${told.id}/${verb}`, { token: operator, ...reason }), 200);
  }
  const ofNotification = { project_id: told.id, notification_id: id };
  const requested = { reason: "requested", by: { name: "Maria" } };
  const expected = {
    "io.herald.notification.paused.v1": { ...ofNotification, reason: "requested", detail: "why" },
    "io.herald.notification.resumed.v1": ofNotification,
    "io.herald.project.paused.v1": { project_id: told.id, ...requested, detail: "why" },
    "io.herald.project.resumed.v1": { project_id: told.id, ...requested },
  };
  const isOfPause = ({ type }: { readonly type: string }) => type in expected;
  const expectEach = (events: readonly { readonly type: string; readonly data: unknown }[]) => {
    expect(events.map(({ type }) => type).sort()).toEqual(Object.keys(expected));
    expect(Object.fromEntries(events.map(({ type, data }) => [type, data]))).toMatchObject(expected);
  };

  // Comes after all of these.
  await told.final((await told.send({ title: "Now", targets: [device.id] })).id);
  const streamed: HeraldEvent[] = [];
  const { events } = new Herald({ url: system.gateway, token: told.token });
  for await (const event of events.follow({ since, signal: AbortSignal.timeout(30_000) })) {
    streamed.push(event);
    if (event.type === "io.herald.notification.completed.v1") break;
  }
  expectEach(streamed.filter(isOfPause));
  await eventually(() =>
    expectEach([...new Map(receiver.on(path).map(({ event }) => [event.id, event])).values()].filter(isOfPause)),
  );
});
