import {
  audienceRequests,
  ChangeVapidKey,
  CreateVapidKey,
  ProjectId,
  Provider,
  providerRequests,
  providerSettings,
  RetiredVapidKey,
  TestedPush,
  testPushOf,
  VapidKey,
  vapidKeyRequests,
  WebPushKey,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { z } from "zod";
import { noCredential, projectAdmin, projectOperator, projectViewer } from "../auth/caller.ts";
import type { RequestDeps, RouteDeps } from "../deps.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute, type Route } from "../http/route.ts";

const titles = { apns: "APNs", fcm: "FCM", webpush: "Web Push" } as const satisfies Record<Provider, string>;
const operations = { apns: "Apns", fcm: "Fcm", webpush: "WebPush" } as const satisfies Record<Provider, string>;

/** The routes of one provider's settings. Dispatch stores settings without knowing projects, so the gateway checks the project first. */
const routesOf = (provider: Provider): Route[] => {
  const path = `/admin/v1/projects/{id}/providers/${provider}` as const;
  const name = titles[provider];
  const ofProject = async ({ params }: { readonly params: { readonly id: ProjectId } }, { projects }: RouteDeps) => ({
    projectId: (await projects.settings(params.id)).id,
    provider,
  });
  return [
    forwardRoute(`put${operations[provider]}Provider`, `put ${path}`, {
      access: projectAdmin,
      summary: `Set a project's ${name} settings`,
      description: "Herald refuses a key that does not parse. Responses never contain secrets.",
      body: providerSettings[provider] as z.ZodType,
      forward: providerRequests.put,
      add: async (request, deps) => ({ ...(await ofProject(request, deps)), settings: request.body }),
      response: "The settings, without secrets",
    }),
    forwardRoute(`get${operations[provider]}Provider`, `get ${path}`, {
      access: projectViewer,
      summary: `Read a project's ${name} settings`,
      forward: providerRequests.get,
      add: ofProject,
      response: "The settings, without secrets",
      errors: ["provider-not-found"],
    }),
    forwardRoute(`delete${operations[provider]}Provider`, `delete ${path}`, {
      access: projectAdmin,
      summary: `Delete a project's ${name} settings`,
      forward: providerRequests.delete,
      add: ofProject,
      response: "The settings are deleted",
      errors: ["provider-not-found"],
    }),
    defineRoute(`test${operations[provider]}Provider`, `post ${path}/test`, {
      access: projectOperator,
      summary: `Send one test push through ${name}`,
      description:
        "Sends one push to the token at once and returns the provider's response. It works while the provider is paused, and appears in no list and no statistics.",
      body: testPushOf(provider),
      responses: { 200: { description: "The provider's response", schema: dataOf(TestedPush) } },
      errors: ["provider-not-found"],
      handle: async (deps, request) => {
        const asked = await ofProject(request, deps);
        return ok(await deps.sendRequest(providerRequests.test, { ...asked, push: request.body }));
      },
    }),
  ];
};

export const providerRoutes = Provider.options.flatMap(routesOf);

const OneKey = dataOf(VapidKey);

const keysPath = "/admin/v1/projects/{id}/providers/webpush/keys";

/** Combines dispatch's keys with registry's subscription counts. */
const keysOf = async ({ sendRequest }: RequestDeps, projectId: ProjectId) => {
  const [{ keys, retired, unnamed }, { subscriptions }] = await Promise.all([
    sendRequest(vapidKeyRequests.list, { projectId }),
    sendRequest(audienceRequests.countVapidKeys, { projectId }),
  ]);
  const known = new Set([...keys.map(({ id }) => id), ...retired]);
  /** The key of a subscription. Subscriptions without a key, or with an unknown one, belong to the `unnamed` key. */
  const ownerOf = (keyId: string | undefined) => (keyId !== undefined && known.has(keyId) ? keyId : unnamed);
  const devicesOf = (id: string) =>
    subscriptions.reduce((sum, { keyId, devices }) => sum + (ownerOf(keyId) === id ? devices : 0), 0);
  return { devicesOf, keys: keys.map((key) => ({ ...key, devices: devicesOf(key.id) })) };
};

const counted = async (deps: RequestDeps, projectId: ProjectId, key: Omit<VapidKey, "devices">): Promise<VapidKey> => {
  const { devicesOf } = await keysOf(deps, projectId);
  return { ...key, devices: devicesOf(key.id) };
};

export const vapidKeyRoutes = [
  defineRoute("getWebPushKey", "get /api/v1/webpush-key", {
    summary: "Read the key that a browser subscribes with",
    description:
      "Needs no credential. `public_key` is the `applicationServerKey` of `pushManager.subscribe`; send it as `keys.vapid_key` when you register the subscription.",
    access: noCredential,
    query: z.strictObject({ project_id: ProjectId.meta({ description: "The project whose key it is" }) }),
    responses: { 200: { description: "The current key", schema: dataOf(WebPushKey) } },
    errors: ["project-not-found", "provider-not-found"],
    handle: async ({ projects }, { query }) => {
      const { id } = await projects.settings(query.project_id);
      const keys = (await projects.vapidKeys(id)) ?? (await projects.vapidKeys(id, true)) ?? [];
      const of = (wanted: VapidKey["status"]) => {
        const found = keys.find(({ status }) => status === wanted);
        return found && { id: found.id, public_key: found.publicKey };
      };
      const [current, next] = [of("current"), of("next")];
      if (current === undefined) throw notFound("provider-not-found", "provider", "the project has no settings for it");
      return ok({ ...current, ...(next && { next }) });
    },
  }),
  defineRoute("listVapidKeys", `get ${keysPath}`, {
    access: projectViewer,
    summary: "List a project's Web Push keys",
    description:
      "The next key first, then the current one, then earlier ones, latest first; each with the number of subscriptions that need it.",
    responses: { 200: { description: "All keys, at most ten", schema: dataOf(z.array(VapidKey)) } },
    errors: ["provider-not-found"],
    handle: async (deps, { params }) => {
      const { id: projectId } = await deps.projects.settings(params.id);
      return ok((await keysOf(deps, projectId)).keys);
    },
  }),
  defineRoute("stageVapidKey", `post ${keysPath}`, {
    access: projectAdmin,
    summary: "Add the next Web Push key",
    description:
      "The first step of a rotation: apps can read the key and subscriptions made with it work, but browsers do not receive it yet. Without a key pair Herald creates one; if there is a next key already, Herald returns it.",
    body: CreateVapidKey,
    responses: {
      200: { description: "The next key existed already", schema: OneKey },
      201: { description: "The next key", schema: OneKey },
    },
    errors: ["provider-not-found", "vapid-key-staged", "too-many-vapid-keys"],
    handle: async (deps, { params, body, idempotent }) => {
      const { id: projectId } = await deps.projects.settings(params.id);
      const perform = async () => {
        const staged = await deps.sendRequest(vapidKeyRequests.stage, { projectId, pair: body.key });
        const key = await counted(deps, projectId, staged.key);
        return staged.created ? created(key) : ok(key);
      };
      // Without a key pair, a repeat returns the staged key; with one, it is refused because the key exists.
      return idempotent({ perform });
    },
  }),
  defineRoute("changeVapidKey", `patch ${keysPath}/{key}`, {
    access: projectAdmin,
    summary: "Make a Web Push key the current one",
    description:
      "Browsers receive it from now on. The previous one becomes `earlier` and still serves its subscriptions. An earlier key can be made current again.",
    body: ChangeVapidKey,
    responses: { 200: { description: "The changed key", schema: OneKey } },
    errors: ["provider-not-found"],
    handle: async (deps, { params }) => {
      const { id: projectId } = await deps.projects.settings(params.id);
      const key = await deps.sendRequest(vapidKeyRequests.promote, { projectId, keyId: params.key });
      return ok(await counted(deps, projectId, key));
    },
  }),
  defineRoute("retireVapidKey", `delete ${keysPath}/{key}`, {
    access: projectAdmin,
    summary: "Retire a Web Push key",
    description:
      "Deletes its private key. Refused while active subscriptions need it, unless `force=true` allows to lose them; the response contains their number. Their pushes fail with `vapid-key-retired` until they subscribe again.",
    query: z.strictObject({
      force: z
        .enum(["true", "false"], 'must be "true" or "false"')
        .optional()
        .meta({ description: "`true`: also while active subscriptions need the key" }),
    }),
    responses: { 200: { description: "The key is retired", schema: dataOf(RetiredVapidKey) } },
    errors: ["provider-not-found", "vapid-key-current", "vapid-key-in-use"],
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
      await deps.sendRequest(vapidKeyRequests.retire, { projectId, keyId });
      // Counts again: a device may have registered with the key meanwhile.
      const { devicesOf: left } = await keysOf(deps, projectId);
      return ok({ id: keyId, lost_devices: left(keyId) });
    },
  }),
];
