import {
  ChangeDeviceRequest,
  ChangeMetadata,
  ChangeMetadataByToken,
  Device,
  type DeviceId,
  DeviceSummary,
  Identification,
  IdentifyDevice,
  Ignored,
  type ProjectId,
  type ProjectRecord,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { anyClient, type CallerOf, clientOrDevice } from "../auth/caller.ts";
import { rejectProtected, withoutProtected } from "../auth/protected-metadata.ts";
import type { RouteDeps } from "../deps.ts";
import { created, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { readSubscription } from "../records/read-subscription.ts";

/** Room for metadata and identifiers of 16 KiB each, tripled because non-Latin characters may be escaped, and two push tokens. */
const clientBodyBytes = 128 * 1024;

/** Throws unless the project allows clients to act by their push token alone. Returns the project's settings. */
const admitClient = async ({ projects }: RouteDeps, projectId: ProjectId): Promise<ProjectRecord> => {
  const settings = await projects.settings(projectId);
  if (settings.openRegistration) return settings;
  throw new HeraldError("forbidden", "project_id: the project registers devices by its own backend only");
};

/** Registers within the limit of new devices of one address; known devices do not count. */
const register = async (
  { sendRequest, limits }: RouteDeps,
  address: string,
  wanted: z.input<typeof IdentifyDevice.request>,
): Promise<z.output<typeof IdentifyDevice.answer>> => {
  const room = await limits.reserveNewDevice(address);
  let isNew = false;
  try {
    const answer = await sendRequest(IdentifyDevice, { ...wanted, ...(room.granted ? {} : { mayCreate: false }) });
    isNew = answer.created;
    return answer;
  } catch (error) {
    throw !room.granted && error instanceof HeraldError && error.code === "rate-limited" ? room.refusal : error;
  } finally {
    if (!isNew) await room.refund();
  }
};

const identify = defineRoute({
  method: "put",
  path: "/api/v1/identification",
  operationId: "identify",
  tag: "Devices",
  summary: "Register this app installation by its push token",
  description:
    "Needs no credential. A `user_token` logs the app's user in. `previous_identifier` is the token that this one replaces: the device keeps its id if the request has the device's credential as `Authorization` or a `user_token` of its user; otherwise a new device registers. Protected values (`protected_metadata`) are left out and listed in `ignored`. The response reveals nothing about a device that was already registered.",
  access: clientOrDevice,
  body: Identification,
  bodyLimitBytes: clientBodyBytes,
  responses: {
    200: {
      description: "The token was known",
      schema: z.object({ data: DeviceSummary, ignored: Ignored.optional() }),
    },
    201: {
      description: "A new device",
      schema: z.object({ data: DeviceSummary, credential: z.string(), ignored: Ignored.optional() }),
    },
  },
  errors: [
    "forbidden",
    "user-token-invalid",
    "user-token-used",
    "project-not-found",
    "token-held",
    "device-quota-exceeded",
  ],
  handle: async (deps, { caller, body, address }) => {
    const { project_id: projectId, identifier: token, user_token: userToken, ...rest } = body;
    const { previous_identifier, token_kind, installation_id, keys, metadata, identifiers, ...device } = rest;
    const { protectedMetadata } = await admitClient(deps, projectId);
    const { ignored, ...data } = withoutProtected({ metadata, identifiers }, protectedMetadata);
    const wanted = {
      projectId,
      token,
      ...device,
      ...(data.metadata && { metadata: data.metadata }),
      ...(data.identifiers && { identifiers: data.identifiers }),
      ...(await readSubscription(deps.projects, projectId, servingProvider(device), keys, "keys")),
      ...(token_kind === undefined ? {} : { tokenKind: token_kind }),
      ...(installation_id === undefined ? {} : { installationId: installation_id }),
      ...(previous_identifier === undefined ? {} : { previousToken: previous_identifier }),
      ...(userToken === undefined ? {} : { userToken }),
      ...(caller.kind === "device" && caller.projectId === projectId ? { provenDevice: caller.deviceId } : {}),
    };
    const { device: summary, credential, created: isNew } = await register(deps, address, wanted);
    const answer = { data: summary, ...(ignored.length > 0 && { ignored: [...ignored] }) };
    if (isNew && credential !== undefined) return created({ ...answer, credential });
    return ok(answer);
  },
});

type Change = z.output<typeof ChangeMetadata>;
type Naming = keyof Omit<Change, "metadata" | "user_token">;

/** The body must name the device exactly if the credential does not. Reports all problems at once. */
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

const changeByToken = async (deps: RouteDeps, body: Change): Promise<DeviceSummary> => {
  if (body.project_id === undefined && body.identifier === undefined) {
    throw new HeraldError(
      "unauthenticated",
      "authorization: send a device credential, a project token with `device_id`, or `project_id` and `identifier` in the body",
    );
  }
  checkNaming(body, ["project_id", "identifier"], ["platform", "provider"], "client identity");
  const projectId = body.project_id as ProjectId;
  const { protectedMetadata } = await admitClient(deps, projectId);
  rejectProtected({ metadata: body.metadata }, protectedMetadata);
  return deps.sendRequest(ChangeMetadataByToken, {
    projectId,
    token: body.identifier as string,
    metadata: body.metadata,
    ...(body.platform === undefined ? {} : { platform: body.platform }),
    ...(body.provider === undefined ? {} : { provider: body.provider }),
    ...(body.user_token === undefined ? {} : { userToken: body.user_token }),
  });
};

const changeMetadata = (method: "patch" | "put") =>
  defineRoute({
    method,
    path: "/api/v1/metadata",
    operationId: method === "patch" ? "changeMetadata" : "putMetadata",
    tag: "Devices",
    summary: "Change a device's metadata",
    description:
      "A JSON Merge Patch (RFC 7396), with PUT as with PATCH: `null` removes a key, other keys stay. Identify the device by its device credential; by `device_id` with a project token; or, without a credential, by `project_id` and `identifier`, and by `platform` and `provider` if the token is registered on two. Without a credential the response contains only the id and the status. A `user_token` logs the app's user in. Only a project token can write protected values (`protected_metadata`).",
    access: anyClient("devices"),
    body: ChangeMetadata,
    bodyLimitBytes: clientBodyBytes,
    responses: {
      200: { description: "The metadata is changed", schema: z.object({ data: z.union([Device, DeviceSummary]) }) },
    },
    errors: [
      "project-not-found",
      "device-not-found",
      "ambiguous-device",
      "metadata-protected",
      "user-token-invalid",
      "user-token-used",
    ],
    handle: async (deps, { caller, body }) => {
      if (caller.kind === "client") return ok({ data: await changeByToken(deps, body) });
      const { projectId } = caller;
      const deviceId = namedDevice(caller, body);
      const { metadata, user_token } = body;
      if (caller.kind === "device") {
        const { protectedMetadata } = await deps.projects.settings(projectId);
        rejectProtected({ metadata }, protectedMetadata);
      }
      const change = { metadata, ...(user_token === undefined ? {} : { user_token }) };
      return ok({
        data: await deps.sendRequest(ChangeDeviceRequest, {
          projectId,
          deviceId,
          change,
          byApp: caller.kind === "device",
        }),
      });
    },
  });

export const identificationRoutes = [identify, changeMetadata("patch"), changeMetadata("put")];
