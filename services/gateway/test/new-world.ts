import { type Notification, Scope, SendV1 } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import type { Request } from "@herald/testing";
import { expect } from "vitest";
import { adminToken, type GatewayTest, openKey } from "./gateway-fixture.ts";
import type { Case, World, WorldPart } from "./route-case.ts";
import { newActivity, newDevice, table } from "./route-table.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

const parsed = parseOpenKeys(`k1:${openKey}`);
if ("problem" in parsed) throw new Error(parsed.problem);
export const openKeys = parsed.keys;

/** Signs open tokens as dispatch does. */
export const openTokens = createOpenTokens(openKeys);

const once = <Made>(make: () => Promise<Made>): (() => Promise<Made>) => {
  let made: Promise<Made> | undefined;
  return () => {
    made ??= make();
    return made;
  };
};

/** What a case needs: the fields of a world that its route and its body read, and what it names besides. */
export const partsOf = ({ route, body, needs = [] }: Case): readonly WorldPart[] => {
  const parts = [...needs];
  const recording = new Proxy({} as World, {
    get: (_, field: keyof World) => {
      parts.push(field);
      return { id: "", name: "" };
    },
  });
  route(recording);
  body?.(recording);
  return parts;
};

/** Creates a project with one of everything, or with these parts alone. */
export const createWorld = async (system: GatewayTest, parts?: readonly WorldPart[]): Promise<World> => {
  const { peers } = system;
  const created = await system.project();
  const project = { ...created, token: await system.token(created, Scope.options) };
  const call = async (route: string, one: Request) => {
    const answer = await system.call(route, one);
    expect(answer.status, `${route}: ${answer.text}`).toBeLessThan(300);
    return answer;
  };
  const byProject = (route: string, body?: unknown) => call(route, { token: project.token, body });
  const byAdmin = (route: string, body?: unknown) => call(route, { token: adminToken, body });
  const user = "u_8412";
  const template = `welcome-${created.id.slice(-8)}`;
  const activity = `order-${created.id.slice(-8)}`;
  const bodyOf = (name: string) => table[name]?.body?.({} as World);

  const device = once(() => byProject("POST /api/v1/devices", { device: { ...newDevice().device, user_id: user } }));
  const notification = once(async () => {
    const sent = await byProject("POST /api/v1/notifications", { notification: { title: "Hi", targets: ["all"] } });
    const value: Notification = sent.body.data;
    peers.notifications.set(value.id, { projectId: project.id, value });
    return value;
  });
  const webhook = once(async () => (await byProject("POST /api/v1/webhooks", bodyOf("createWebhook"))).body.data.id);
  const putProvider = (provider: string, operation: string) =>
    byAdmin(`PUT /admin/v1/projects/${project.id}/providers/${provider}`, bodyOf(operation));

  const make: { [Field in keyof World]: () => Promise<World[Field]> } & Record<WorldPart, () => Promise<unknown>> = {
    project: async () => project,
    tokenId: async () => (await byAdmin(`GET /admin/v1/projects/${project.id}/tokens`)).body.data[0].id,
    device: async () => (await device()).body.data,
    user: async () => (await device()).body.data.user_id,
    credential: async () => (await device()).body.credential,
    importId: async () => (await byProject("POST /api/v1/imports", { import: { format: "herald" } })).body.data.id,
    recipientsId: async () => (await notification()).id,
    topic: async () => (await byProject("POST /api/v1/topics", { topic: { name: "news" } })).body.data,
    template: async () => {
      await byProject(`PUT /api/v1/templates/${template}`, bodyOf("putTemplate"));
      await byProject(`POST /api/v1/templates/${template}/publish`);
      return template;
    },
    notification,
    activity: async () => {
      await byProject(`PUT /api/v1/activities/${activity}`, newActivity());
      return activity;
    },
    apns: () => putProvider("apns", "putApnsProvider"),
    fcm: () => putProvider("fcm", "putFcmProvider"),
    nextKey: async () => {
      await putProvider("webpush", "putWebPushProvider");
      return (await byAdmin(`POST /admin/v1/projects/${project.id}/providers/webpush/keys`, {})).body.data.id;
    },
    webhook,
    webhookMessage: async () => (await byProject(`POST /api/v1/webhooks/${await webhook()}/ping`)).body.data.id,
    operator: async () =>
      (await byAdmin("POST /admin/v1/operators", { operator: { name: "Maria", role: "viewer" } })).body.data.id,
    identityKey: async () => (await byAdmin(`POST /admin/v1/projects/${project.id}/identity-keys`, {})).body.data.id,
    deadLetter: async () => {
      const { id, created_at: at } = await notification();
      const content = { title: "Hi", targets: ["all"] };
      const dead = { projectId: project.id, notificationId: id, content, acceptedAt: at, expiresAt: at };
      return writeDeadLetter(system.bus, "dispatch-start", SendV1, dead);
    },
    openToken: async () => {
      const { id: deviceId, platform } = (await device()).body.data;
      const claim = { projectId: project.id, notificationId: (await notification()).id, deviceId, platform };
      return openTokens.sign(claim, new Date());
    },
  };
  const world: Record<string, unknown> = { project };
  for (const part of new Set(parts ?? (Object.keys(make) as WorldPart[]))) world[part] = await make[part]();
  return world as World;
};
