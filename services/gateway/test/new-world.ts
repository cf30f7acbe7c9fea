import { type Notification, Scope, SendV1 } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { expect } from "vitest";
import { adminToken, type GatewayTest, openKey } from "./gateway-fixture.ts";
import type { World } from "./route-case.ts";
import { newActivity, newDevice, table } from "./route-table.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

const parsed = parseOpenKeys(`k1:${openKey}`);
if ("problem" in parsed) throw new Error(parsed.problem);
export const openKeys = parsed.keys;

/** Signs open tokens as dispatch does. */
export const openTokens = createOpenTokens(openKeys);

/** Creates a project with one of everything. */
export const createWorld = async (system: GatewayTest): Promise<World> => {
  const { call, peers } = system;
  const created = await system.project();
  const project = { ...created, token: await system.token(created, Scope.options) };
  const { token } = project;
  const user = "u_8412";
  const registered = await call("POST /api/v1/devices", {
    token,
    body: { device: { ...newDevice().device, user_id: user } },
  });
  const topic = await call("POST /api/v1/topics", { token, body: { topic: { name: "news" } } });
  const template = `welcome-${created.id.slice(-8)}`;
  await call(`PUT /api/v1/templates/${template}`, { token, body: table.putTemplate?.body?.({} as World) });
  await call(`POST /api/v1/templates/${template}/publish`, { token });
  const sent = await call("POST /api/v1/notifications", {
    token,
    body: { notification: { title: "Hi", targets: ["all"] } },
  });
  const notification: Notification = sent.body.data;
  peers.notifications.set(notification.id, { projectId: project.id, value: notification });
  const activity = `order-${project.id.slice(-8)}`;
  await call(`PUT /api/v1/activities/${activity}`, { token, body: newActivity() });
  const tokens = await call(`GET /admin/v1/projects/${project.id}/tokens`, { token: adminToken });
  for (const [provider, settings] of [
    ["apns", table.putApnsProvider?.body],
    ["fcm", table.putFcmProvider?.body],
    ["webpush", table.putWebPushProvider?.body],
  ] as const) {
    const body = settings?.({} as World);
    const put = await call(`PUT /admin/v1/projects/${project.id}/providers/${provider}`, { token: adminToken, body });
    expect(put.status).toBe(200);
  }
  const keys = `POST /admin/v1/projects/${project.id}/providers/webpush/keys`;
  const staged = await call(keys, { token: adminToken, body: {} });
  expect(staged.status).toBe(201);
  const identityKey = await call(`POST /admin/v1/projects/${project.id}/identity-keys`, {
    token: adminToken,
    body: {},
  });
  const operator = await call("POST /admin/v1/operators", {
    token: adminToken,
    body: { operator: { name: "Maria", role: "viewer" } },
  });
  expect(operator.status, operator.text).toBe(201);
  const hook = await call("POST /api/v1/webhooks", { token, body: table.createWebhook?.body?.({} as World) });
  const ping = await call(`POST /api/v1/webhooks/${hook.body.data.id}/ping`, { token });
  const started = await call("POST /api/v1/imports", { token, body: { import: { format: "herald" } } });
  const times = { acceptedAt: notification.created_at, expiresAt: notification.created_at };
  const content = { title: "Hi", targets: ["all"] };
  const dead = { projectId: project.id, notificationId: notification.id, content, ...times };
  const { id: deviceId, platform } = registered.body.data;
  const claim = { projectId: project.id, notificationId: notification.id, deviceId, platform };
  return {
    project,
    tokenId: tokens.body.data[0].id,
    device: registered.body.data,
    user,
    credential: registered.body.credential,
    importId: started.body.data.id,
    recipientsId: notification.id,
    topic: topic.body.data,
    template,
    notification,
    activity,
    webhook: hook.body.data.id,
    webhookMessage: ping.body.data.id,
    nextKey: staged.body.data.id,
    operator: operator.body.data.id,
    identityKey: identityKey.body.data.id,
    deadLetter: await writeDeadLetter(system.bus, "dispatch-start", SendV1, dead),
    openToken: openTokens.sign(claim, new Date()),
  };
};
