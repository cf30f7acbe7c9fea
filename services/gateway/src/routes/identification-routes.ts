import {
  ChangeMetadata,
  CreateIdentityKey,
  Device,
  type DeviceId,
  DeviceSummary,
  deviceRequests,
  Identification,
  IdentityKey,
  Ignored,
  identityKeyRequests,
  newIdentityKeyId,
  type ProjectId,
  type ProjectRecord,
  servingProvider,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import { z } from "zod";
import { anyClient, type CallerOf, clientOrDevice, projectAdmin, projectViewer } from "../auth/caller.ts";
import { readSubscription } from "../auth/directories.ts";
import { withoutProtected } from "../auth/protected-metadata.ts";
import type { RouteDeps } from "../deps.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { identifiersOfApp, leftOut } from "./identifiers.ts";

/** Metadata and identifiers of 16 KiB each, tripled because non-Latin characters may be escaped, and two push tokens. */
const clientBodyBytes = 128 * 1024;

/** Throws unless the project allows clients to act with only their push token. Returns the project's settings. */
const admitClient = async ({ projects }: Pick<RouteDeps, "projects">, projectId: ProjectId): Promise<ProjectRecord> => {
  const settings = await projects.settings(projectId);
  if (settings.openRegistration) return settings;
  throw new HeraldError("forbidden", "project_id: the project registers devices by its own backend only");
};

/** Registers within the address's limit of new devices; known devices do not count. */
const register = async (
  { sendRequest, limits }: Pick<RouteDeps, "limits" | "sendRequest">,
  address: string,
  wanted: z.input<typeof deviceRequests.identify.request>,
): Promise<z.output<typeof deviceRequests.identify.answer>> => {
  const room = await limits.reserveNewDevice(address);
  let isNew = false;
  try {
    const answer = await sendRequest(deviceRequests.identify, {
      ...wanted,
      ...(room.granted > 0 ? {} : { mayCreate: false }),
    });
    isNew = answer.created;
    return answer;
  } catch (error) {
    throw room.granted === 0 && hasCode(error, "rate-limited") ? room.refusal : error;
  } finally {
    if (!isNew) await room.refund(room.granted);
  }
};

const ignored = { ignored: Ignored.optional() };
const Known = dataOf(DeviceSummary).extend(ignored);

const identify = defineRoute("identify", "put /api/v1/identification", {
  summary: "Register this app installation by its push token",
  description:
    "Needs no credential. A `user_token` logs the app's user in. `previous_identifier` is the token that this one replaces: the device keeps its id if the request has the device's credential as `Authorization` or a `user_token` of its user; otherwise a new device registers. Protected values (`protected_metadata`) and a time zone or locale that is not valid are left out and listed in `ignored`. A known device is registered again by its push token alone: it is active again if its provider rejected the token or it was silent, but `environment`, `token_kind`, `keys` and `installation_id` are left out, `capabilities` can only be removed, and a deactivation that was requested stays, unless the request has that proof. The response reveals nothing else about a device that was already registered.",
  access: clientOrDevice,
  body: Identification,
  bodyLimitBytes: clientBodyBytes,
  responses: {
    200: {
      description: "The token was known",
      schema: Known.extend({
        credential: z.string().optional().meta({
          description:
            "Once, for a device of `PUT /devices` or an import that has none: if `user_token` is of the user whom your backend gave it",
        }),
      }),
    },
    201: { description: "A new device", schema: z.object({ data: DeviceSummary, credential: z.string(), ...ignored }) },
  },
  errors: [
    "forbidden",
    "user-token-invalid",
    "user-token-used",
    "project-not-found",
    "token-in-use",
    "device-quota-exceeded",
  ],
  handle: async (deps, { caller, body, address }) => {
    const { project_id: projectId, identifier: token, user_token: userToken, ...rest } = body;
    const { previous_identifier, token_kind, installation_id, keys, metadata, identifiers, ...device } = rest;
    const { protectedMetadata } = await admitClient(deps, projectId);
    const { ignored: isProtected, ...data } = withoutProtected({ metadata, identifiers }, protectedMetadata);
    const read = identifiersOfApp(data.identifiers);
    const subscription = { provider: servingProvider(device), token, keys };
    const names = { token: "identifier", keys: "keys" };
    const answer = await register(deps, address, {
      projectId,
      token,
      ...device,
      ...data,
      identifiers: read.identifiers,
      ...(await readSubscription(deps.projects, projectId, subscription, names)),
      tokenKind: token_kind,
      installationId: installation_id,
      previousToken: previous_identifier,
      userToken,
      provenDevice: caller.kind === "device" && caller.projectId === projectId ? caller.deviceId : undefined,
    });
    const { device: known, credential } = answer;
    const ignored = [...isProtected, ...read.ignored, ...(answer.ignored ?? [])];
    const more = leftOut(ignored);
    if (answer.created && credential !== undefined) return created(known, { credential, ...more });
    return ok(known, { ...(credential !== undefined && { credential }), ...more });
  },
});

type Change = z.output<typeof ChangeMetadata>;
type Naming = keyof Omit<Change, "metadata" | "user_token">;

/** If the credential does not identify the device, the body must identify exactly one. Reports all problems at once. */
const checkNaming = (body: Change, required: readonly Naming[], optional: readonly Naming[], who: string): void => {
  const all: readonly Naming[] = ["device_id", "project_id", "identifier", "platform", "provider"];
  const problems = all.flatMap((field) => {
    if (required.includes(field)) return body[field] === undefined ? [`${field}: is required with ${who}`] : [];
    return body[field] === undefined || optional.includes(field) ? [] : [`${field}: is not accepted with ${who}`];
  });
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
};

const namedDevice = (caller: CallerOf<"project" | "device">, body: Change): DeviceId => {
  if (caller.kind === "device") {
    checkNaming(body, [], [], "a device credential, which names the device");
    return caller.deviceId;
  }
  checkNaming(body, ["device_id"], [], "a project token");
  if (body.user_token !== undefined)
    throw new HeraldError(
      "validation-failed",
      "user_token: is not accepted with a project token; name the user with PUT /api/v1/users/{user}/devices/{id}",
    );
  return body.device_id as DeviceId;
};

const changeByToken = async (deps: Pick<RouteDeps, "projects" | "sendRequest">, body: Change) => {
  if (body.project_id === undefined && body.identifier === undefined) {
    throw new HeraldError(
      "unauthenticated",
      "authorization: send a device credential, a project token with `device_id`, or `project_id` and `identifier` in the body",
    );
  }
  checkNaming(body, ["project_id", "identifier"], ["platform", "provider"], "client identity");
  const projectId = body.project_id as ProjectId;
  const { protectedMetadata } = await admitClient(deps, projectId);
  const { metadata = {}, ignored } = withoutProtected({ metadata: body.metadata }, protectedMetadata);
  const device = await deps.sendRequest(deviceRequests.changeByToken, {
    projectId,
    token: body.identifier as string,
    metadata,
    platform: body.platform,
    provider: body.provider,
    userToken: body.user_token,
  });
  return ok(device, leftOut(ignored));
};

const changeMetadata = (method: "patch" | "put") =>
  defineRoute(method === "patch" ? "changeMetadata" : "putMetadata", `${method} /api/v1/metadata`, {
    summary: "Change a device's metadata",
    description:
      "A JSON Merge Patch (RFC 7396), with PUT as with PATCH: `null` removes a key, other keys stay. Identify the device by its device credential; by `device_id` with a project token; or, without a credential, by `project_id` and `identifier`, and by `platform` and `provider` if the token is registered on two. Without a credential the response contains only the id and the status. A `user_token` logs the app's user in. Only a project token can write protected values (`protected_metadata`): from others they are left out and listed in `ignored`.",
    access: anyClient("devices"),
    body: ChangeMetadata,
    bodyLimitBytes: clientBodyBytes,
    responses: {
      200: { description: "The metadata is changed", schema: dataOf(z.union([Device, DeviceSummary])).extend(ignored) },
    },
    errors: ["project-not-found", "device-not-found", "ambiguous-device", "user-token-invalid", "user-token-used"],
    handle: async (deps, { caller, body }) => {
      if (caller.kind === "client") return changeByToken(deps, body);
      const { projectId } = caller;
      const deviceId = namedDevice(caller, body);
      const { user_token } = body;
      const byApp = caller.kind === "device";
      const paths = byApp ? (await deps.projects.settings(projectId)).protectedMetadata : [];
      const { metadata = {}, ignored } = withoutProtected({ metadata: body.metadata }, paths);
      const change = { metadata, user_token };
      const device = await deps.sendRequest(deviceRequests.change, { projectId, deviceId, change, byApp });
      return ok(device, leftOut(ignored));
    },
  });

export const identificationRoutes = [identify, changeMetadata("patch"), changeMetadata("put")];

export const identityKeyRoutes = [
  defineRoute("createIdentityKey", "post /admin/v1/projects/{id}/identity-keys", {
    summary: "Create an identity secret, or register a public key",
    description:
      "Your backend signs user tokens with it. `{}` creates a secret for HS256, which only this response contains; sign with the bytes of the whole text. A `public_key`, as PEM or JWK, verifies ES256 (P-256), EdDSA (Ed25519) or RS256 (2048 bits or more). A project has at most two secrets and four public keys.",
    access: projectAdmin,
    body: CreateIdentityKey,
    responses: {
      201: {
        description: "The key",
        schema: dataOf(IdentityKey).extend({
          secret: shownOnce("`his_…`; absent for a public key, and when a response is replayed"),
        }),
      },
    },
    errors: ["identity-key-limit"],
    handle: async ({ sendRequest }, { params, body, idempotent }) =>
      idempotent({
        newId: newIdentityKeyId,
        perform: async ({ id }) => {
          const asked = { projectId: params.id, keyId: id, publicKey: body.public_key };
          const { key, secret } = await sendRequest(identityKeyRequests.create, asked);
          return created(key, { secret });
        },
      }),
  }),
  forwardRoute("listIdentityKeys", "get /admin/v1/projects/{id}/identity-keys", {
    summary: "List a project's identity keys, oldest first",
    access: projectViewer,
    forward: identityKeyRequests.list,
    response: "A page of keys, without their secrets",
  }),
  forwardRoute("deleteIdentityKey", "delete /admin/v1/projects/{id}/identity-keys/{key}", {
    summary: "Delete an identity key",
    description: "User tokens signed with it are refused from now on. Devices keep their users.",
    access: projectAdmin,
    forward: identityKeyRequests.delete,
    response: "The key is deleted",
  }),
];
