import { type DeviceId, type NotificationId, newNotificationId, type Platform } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens, openTokenLifetimeMs } from "@herald/payload";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Content, Project } from "../harness/project.ts";
import { newAddress, seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let stranger: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Receipts", ["apns", "fcm", "webpush"]);
  stranger = await system.project("Stranger");
});
logOnFailure(() => system);

const buttons = [{ id: "track", title: "Track" }];
const verbs = ["received", "dismissed", "open"] as const;
const second = 1_000;

type Claim = { readonly id: string; readonly deviceId: DeviceId; readonly of?: Project; readonly issuedAt?: Date };

/** Signs the open token of a push that asks for a receipt, as dispatch does. */
const sign = ({ id, deviceId, of = project, issuedAt = new Date() }: Claim): string => {
  const parsed = parseOpenKeys(system.environmentOf("gateway").HERALD_OPEN_KEYS ?? "");
  if ("problem" in parsed) throw new Error(parsed.problem);
  const claim = {
    projectId: of.id,
    notificationId: id as NotificationId,
    deviceId,
    platform: "ios",
    asked: true,
  } as const;
  return createOpenTokens(parsed.keys).sign(claim, issuedAt);
};

const report = (id: string, verb: (typeof verbs)[number], body: object) =>
  request(system.gateway, `PUT /api/v1/notifications/${id}/${verb}`, { body: { project_id: project.id, ...body } });

const sendTo = async (devices: readonly string[], more: Partial<Content> = {}) => {
  const { id } = await project.send({ title: "Hello", targets: devices.map((one) => `device:${one}`), ...more });
  return project.final(id);
};

test("forged, foreign and old tokens of reports count nothing", async ({ task }) => {
  const [{ device }, { device: other }] = [await project.register(), await project.register()];
  const { id } = await sendTo([device.id], { receipts: true, buttons });
  const { id: another } = await sendTo([other.id]);
  const token = sign({ id, deviceId: device.id });
  const expired = new Date(Date.now() - openTokenLifetimeMs - second);
  const [version = "", key = "", ...rest] = token.split(".");
  const bad: Record<string, string> = {
    "a changed signature": `${token.slice(0, -4)}AAAA`,
    "another device": token.replace(device.id, other.id),
    "another notification": sign({ id: another, deviceId: device.id }),
    "a notification that does not exist": sign({ id: newNotificationId(new Date()), deviceId: device.id }),
    "another project": sign({ id, deviceId: device.id, of: stranger }),
    "a later end": token.replace(/\.\d{10}\./, ".9999999999."),
    "another platform": token.replace(".I.", ".W."),
    "an unknown key": [version, "unknown", ...rest].join("."),
    "no key": [version, ...rest].join("."),
    "31 days": sign({ id, deviceId: device.id, issuedAt: expired }),
    "line breaks": `${token}\n`,
    "two tokens": `${token}${token}`,
    nothing: "x",
    "a megabyte": key.repeat(100_000),
  };
  const wrong: string[] = [];
  for (const [what, forged] of Object.entries(bad))
    for (const verb of verbs) {
      const { status, body } = await report(id, verb, { token: forged, ago: 1 });
      const refused = status === 403 && body.type === "/docs/errors#open-token-invalid";
      if (!refused && status !== 413 && status !== 422) wrong.push(`${verb} with ${what}: ${status}`);
    }
  expect(wrong).toEqual([]);
  // Of the same stream, so all before it would be counted.
  expectStatus(await report(id, "dismissed", { token, ago: 1 }), 204);
  expectStatus(await report(id, "open", { token }), 204);
  await eventually(async () =>
    expect((await project.notification(id)).counts).toMatchObject({ received: 0, dismissed: 1, opened: 1 }),
  );
  show(task, { tokens: Object.keys(bad).length * verbs.length });
});

test("unasked reports count for nothing", async ({ task }) => {
  const capabilities = ["receipts", "buttons", "draws"];
  const devices: { readonly id: string; readonly why: string; readonly content: Partial<Content> }[] = [];
  for (const [why, content, of] of [
    ["the notification asks for none", {}, { capabilities }],
    ["the app's kit reports none", { receipts: true }, { capabilities: [] }],
    ["the share is 0", { receipts: 0 }, { capabilities }],
    ["silent", { receipts: true, silent: true, title: undefined }, { capabilities }],
  ] as const) {
    const { device } = await project.register(of as never);
    devices.push({ id: device.id, why, content: content as Partial<Content> });
  }
  const { device: asked } = await project.register({ capabilities });
  const wrong: string[] = [];
  const reported = async (deviceId: string, id: string) => {
    const push = (await system.simulators.pushes()).find((one) => payloadOf(one)?.notification_id === id);
    const { token } = payloadOf(push as never) as unknown as { token: string };
    for (const verb of ["received", "dismissed"] as const) expectStatus(await report(id, verb, { token, ago: 1 }), 204);
    return { id, deviceId };
  };
  const sent: { readonly id: string; readonly why: string }[] = [];
  for (const { id: deviceId, why, content } of devices) {
    const { id } = await sendTo([deviceId], { ...content, ...(content.silent && { data: { a: "b" } }) });
    sent.push({ ...(await reported(deviceId, id)), why });
  }
  const { id: good } = await sendTo([asked.id], { receipts: true });
  await reported(asked.id, good);
  await eventually(async () =>
    expect((await project.notification(good)).counts).toMatchObject({ received: 1, dismissed: 1 }),
  );
  for (const { id, why } of sent) {
    const { received, dismissed } = (await project.notification(id)).counts;
    if (received || dismissed) wrong.push(`${why}: ${received} received, ${dismissed} dismissed`);
  }
  show(task, { "pushes that did not ask": sent.length, counted: wrong.length });
  expect(wrong).toEqual([]);
});

test("a receipt counts between its push and now, whatever it says", async ({ task }) => {
  const accepted = [0, 59, 31_536_000, 1e15, Number.MAX_SAFE_INTEGER];
  const refused = [-1, 59.5, "5", true, {}, [1], Number.MAX_VALUE * -1];
  const devices = await seed(system, project, accepted.length);
  const { id, created_at: created } = await sendTo(
    devices.map((one) => one.id),
    { receipts: true },
  );
  const wrong: string[] = [];
  for (const ago of refused) {
    const { status } = await report(id, "received", { token: sign({ id, deviceId: devices[0]?.id as DeviceId }), ago });
    if (status !== 422) wrong.push(`${JSON.stringify(ago)}: ${status}`);
  }
  for (const [at, ago] of accepted.entries())
    for (const verb of verbs) {
      const token = sign({ id, deviceId: devices[at]?.id as DeviceId, issuedAt: new Date(created) });
      const { status } = await report(id, verb, { token, ago });
      if (status !== 204) wrong.push(`${ago}: ${status}`);
    }
  expect(wrong).toEqual([]);
  const rows = await eventually(async () => {
    const found = (await project.deliveries(id)).filter((row) => row.received_at && row.dismissed_at && row.opened_at);
    expect(found).toHaveLength(accepted.length);
    return found;
  });
  for (const { received_at, dismissed_at, opened_at } of rows)
    for (const at of [received_at, dismissed_at, opened_at]) {
      // The token has its time in seconds.
      expect(Date.parse(at ?? "")).toBeGreaterThanOrEqual(Date.parse(created) - second);
      expect(Date.parse(at ?? "")).toBeLessThanOrEqual(Date.now());
    }
  show(task, { times: accepted.length + refused.length });
});

test("10,000 invented button ids leave no count", async ({ task }) => {
  const ids = scale(10_000, 500);
  const devices = await seed(system, project, ids / 10);
  const { id } = await sendTo(
    devices.map((one) => one.id),
    { receipts: true, buttons },
  );
  const tokens = devices.map(({ id: deviceId }) => sign({ id, deviceId }));
  const wrong: string[] = [];
  await inParallel(Array.from({ length: ids }), 16, async (_, at) => {
    const { status } = await report(id, "open", { token: tokens[at % tokens.length], button: `invented-${at}` });
    if (status !== 204) wrong.push(`${at}: ${status}`);
  });
  expect(wrong).toEqual([]);
  await eventually(
    async () => expect((await project.notification(id)).counts).toMatchObject({ opened: devices.length }),
    { timeoutMs: 60_000 },
  );
  await eventually(
    async () => {
      const rows = await project.deliveries(id);
      expect(rows.filter(({ opened_at }) => opened_at)).toHaveLength(devices.length);
      expect(rows.filter(({ button }) => button !== undefined)).toEqual([]);
    },
    { timeoutMs: 60_000 },
  );
  expect((await project.notification(id)).counts).not.toHaveProperty("buttons");
  const stats = await project.call(`GET /stats?notification=${id}`);
  expect(stats.text).not.toContain("invented");

  const many = Array.from({ length: ids }, (_, at) => ({ id: `b-${at}`, title: "B" }));
  const titles = Object.fromEntries(many.map((one) => [one.id, one.title]));
  for (const fields of [{ buttons: many }, { buttons, localizations: { de: { buttons: titles } } }]) {
    const answer = await project.call("POST /notifications", {
      body: { notification: { title: "x", targets: ["all"], ...fields } },
    });
    expect([413, 422]).toContain(answer.status);
    expect(answer.text.length).toBeLessThan(100_000);
  }
  show(task, { ids, devices: devices.length });
});

test("only an Android app may claim to draw", async ({ task }) => {
  const capabilities = ["draws", "buttons", "receipts", "updates"];
  const pushed: Partial<Record<Platform, Record<string, unknown>>> = {};
  for (const platform of ["ios", "web", "android"] as const) {
    const address = await newAddress(system.simulators, platform);
    const { device } = await project.register({ ...address, platform, capabilities });
    const { id } = await sendTo([device.id], { receipts: true, buttons });
    const push = (await system.simulators.pushes()).find((one) => payloadOf(one)?.notification_id === id);
    if (push === undefined) throw new Error(`no push on ${platform}`);
    pushed[platform] = payloadOf(push) as unknown as Record<string, unknown>;
  }
  expect(pushed.ios).toMatchObject({ aps: { alert: { title: "Hello" } } });
  expect(pushed.ios).not.toHaveProperty("herald");
  expect(pushed.web).toMatchObject({ notification: { title: "Hello" } });
  expect(pushed.web).not.toHaveProperty("herald");
  expect(pushed.android).toHaveProperty("herald");
  show(task, { platforms: 3 });
});
