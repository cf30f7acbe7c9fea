import {
  ChangeVapidKey,
  CountVapidKeys,
  CreateVapidKey,
  ListVapidKeys,
  type ProjectId,
  ProjectId as ProjectIdSchema,
  PromoteVapidKey,
  RetiredVapidKey,
  RetireVapidKey,
  StageVapidKey,
  VapidKey,
  VapidKeyId,
  WebPushKey,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { admin, noCredential, viewer } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { created, ok } from "../http/reply.ts";
import { defineRoute, type PathParam } from "../http/route.ts";
import { projectParam } from "./path-params.ts";

const OneKey = z.object({ data: VapidKey });
const keyParam = { schema: VapidKeyId, error: "vapid-key-not-found" } as const satisfies PathParam;

const keysPath = "/admin/v1/projects/{id}/providers/webpush/keys";
const common = { tag: "Administration" } as const;

/** Joins the keys of dispatch with registry's numbers of subscriptions. */
const keysOf = async ({ sendRequest }: RouteDeps, projectId: ProjectId) => {
  const [{ keys, retired, unnamed }, { subscriptions }] = await Promise.all([
    sendRequest(ListVapidKeys, { projectId }),
    sendRequest(CountVapidKeys, { projectId }),
  ]);
  const held = new Set([...keys.map(({ id }) => id), ...retired]);
  /** The key of a subscription. Those that name no key, or one of earlier settings, belong to the first key. */
  const ownerOf = (keyId: string | undefined) => (keyId !== undefined && held.has(keyId) ? keyId : unnamed);
  const devicesOf = (id: string) =>
    subscriptions.reduce((sum, { keyId, devices }) => sum + (ownerOf(keyId) === id ? devices : 0), 0);
  return { devicesOf, keys: keys.map((key) => ({ ...key, devices: devicesOf(key.id) })) };
};

const counted = async (deps: RouteDeps, projectId: ProjectId, key: Omit<VapidKey, "devices">): Promise<VapidKey> => {
  const { devicesOf } = await keysOf(deps, projectId);
  return { ...key, devices: devicesOf(key.id) };
};

const readKey = defineRoute({
  method: "get",
  path: "/api/v1/webpush-key",
  operationId: "getWebPushKey",
  tag: "Devices",
  summary: "Read the key that a browser subscribes with",
  description:
    "Needs no credential. `public_key` is the `applicationServerKey` of `pushManager.subscribe`; send it as `keys.vapid_key` when you register the subscription.",
  access: noCredential,
  query: z.strictObject({ project_id: ProjectIdSchema.meta({ description: "The project whose key it is" }) }),
  responses: { 200: { description: "The current key", schema: z.object({ data: WebPushKey }) } },
  errors: ["project-not-found", "provider-not-found"],
  handle: async ({ projects }, { query }) => {
    const { id } = await projects.settings(query.project_id);
    const keys = (await projects.vapidKeys(id)) ?? (await projects.vapidKeys(id, true)) ?? [];
    const of = (wanted: VapidKey["status"]) => {
      const found = keys.find(({ status }) => status === wanted);
      return found && { id: found.id, public_key: found.publicKey };
    };
    const [current, next] = [of("current"), of("next")];
    if (current === undefined) throw new HeraldError("provider-not-found", "the project has no settings for webpush");
    return ok({ data: { ...current, ...(next && { next }) } });
  },
});

const listKeys = defineRoute({
  ...common,
  access: viewer,
  method: "get",
  path: keysPath,
  operationId: "listVapidKeys",
  summary: "List a project's Web Push keys",
  description:
    "The next key first, then the current one, then earlier ones, latest first; each with the number of subscriptions that need it.",
  params: { id: projectParam },
  responses: { 200: { description: "All keys, at most ten", schema: z.object({ data: z.array(VapidKey) }) } },
  errors: ["project-not-found", "provider-not-found"],
  handle: async (deps, { params }) => {
    const { id: projectId } = await deps.projects.settings(params.id);
    return ok({ data: (await keysOf(deps, projectId)).keys });
  },
});

const stageKey = defineRoute({
  ...common,
  access: admin,
  method: "post",
  path: keysPath,
  operationId: "stageVapidKey",
  summary: "Add the next Web Push key",
  description:
    "The first step of a rotation: apps can read the key and subscriptions made with it work, but browsers do not receive it yet. Without a key pair Herald creates one; if there is a next key already, Herald returns it.",
  params: { id: projectParam },
  body: CreateVapidKey,
  responses: {
    200: { description: "The next key existed already", schema: OneKey },
    201: { description: "The next key", schema: OneKey },
  },
  errors: ["project-not-found", "provider-not-found", "vapid-key-staged", "too-many-vapid-keys"],
  handle: async (deps, { params, body, idempotent }) => {
    const { id: projectId } = await deps.projects.settings(params.id);
    const perform = async () => {
      const pair = body.key;
      const { key, created: isNew } = await deps.sendRequest(StageVapidKey, { projectId, ...(pair && { pair }) });
      const answer = { data: await counted(deps, projectId, key) };
      return isNew ? created(answer) : ok(answer);
    };
    // Without a pair a repeat returns the key; with one it is refused, because the key exists.
    return idempotent({ newId: () => "", perform });
  },
});

const promoteKey = defineRoute({
  ...common,
  access: admin,
  method: "patch",
  path: `${keysPath}/{key}`,
  operationId: "changeVapidKey",
  summary: "Make a Web Push key the current one",
  description:
    "Browsers receive it from now on. The previous one becomes `earlier` and still serves its subscriptions. An earlier key can be made current again.",
  params: { id: projectParam, key: keyParam },
  body: ChangeVapidKey,
  responses: { 200: { description: "The changed key", schema: OneKey } },
  errors: ["project-not-found", "provider-not-found"],
  handle: async (deps, { params }) => {
    const { id: projectId } = await deps.projects.settings(params.id);
    const key = await deps.sendRequest(PromoteVapidKey, { projectId, keyId: params.key });
    return ok({ data: await counted(deps, projectId, key) });
  },
});

const retireKey = defineRoute({
  ...common,
  access: admin,
  method: "delete",
  path: `${keysPath}/{key}`,
  operationId: "retireVapidKey",
  summary: "Retire a Web Push key",
  description:
    "Deletes its private key. Refused while active subscriptions need it, unless `force=true` allows to lose them; the response contains their number. Their pushes fail with `vapid-key-retired` until they subscribe again.",
  params: { id: projectParam, key: keyParam },
  query: z.strictObject({
    force: z
      .enum(["true", "false"], 'must be "true" or "false"')
      .optional()
      .meta({ description: "`true`: also while active subscriptions need the key" }),
  }),
  responses: { 200: { description: "The key is retired", schema: z.object({ data: RetiredVapidKey }) } },
  errors: ["project-not-found", "provider-not-found", "vapid-key-current", "vapid-key-in-use"],
  handle: async (deps, { params: { id, key: keyId }, query }) => {
    const { id: projectId } = await deps.projects.settings(id);
    const { devicesOf, keys } = await keysOf(deps, projectId);
    const devices = devicesOf(keyId);
    const retirable = keys.some((key) => key.id === keyId && key.status !== "current");
    if (retirable && devices > 0 && query.force !== "true")
      throw new HeraldError(
        "vapid-key-in-use",
        `key: ${devices} active ${devices === 1 ? "subscription was" : "subscriptions were"} made with it and would get nothing until they subscribe again; wait for them, or repeat with force=true`,
      );
    await deps.sendRequest(RetireVapidKey, { projectId, keyId });
    // Counts again: a device may have registered in between.
    const { devicesOf: left } = await keysOf(deps, projectId);
    return ok({ data: { id: keyId, lost_devices: left(keyId) } });
  },
});

export const vapidKeyRoutes = [readKey, listKeys, stageKey, promoteKey, retireKey];
