import {
  ChangeDeviceQuestion,
  ChangeMetadata,
  ChangeMetadataByToken,
  Device,
  type DeviceId,
  DeviceSummary,
  Identification,
  IdentifyDevice,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { anyClient, type CallerOf, noCredential } from "../auth/caller.ts";
import type { Gateway } from "../gateway.ts";
import { created, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { readSubscription } from "../records/read-subscription.ts";

/** Metadata and identifiers of 16 KiB each, were every character of other scripts escaped, which triples them, beside two push tokens. */
const clientBodyBytes = 128 * 1024;

/** Lets a client act by its push token alone, where the project allows that. */
const admitClient = async ({ projects }: Gateway, projectId: ProjectId): Promise<void> => {
  const { openRegistration } = await projects.settings(projectId);
  if (openRegistration) return;
  throw new HeraldError("forbidden", "project_id: the project registers devices by its own backend only");
};

const identify = defineRoute({
  method: "put",
  path: "/api/v1/identification",
  operationId: "identify",
  tag: "Devices",
  summary: "Register this app installation by its push token",
  description:
    "Needs no credential. `previous_identifier` is the token that this one replaces: the device is kept. Answers say nothing about a device that was known already.",
  access: noCredential,
  cors: true,
  body: Identification,
  bodyLimitBytes: clientBodyBytes,
  answers: {
    200: { description: "The token was known", schema: z.object({ data: DeviceSummary }) },
    201: { description: "A new device", schema: z.object({ data: DeviceSummary, credential: z.string() }) },
  },
  errors: ["forbidden", "project-not-found", "token-held"],
  handle: async (gateway, { body }) => {
    const { project_id: projectId, identifier: token, previous_identifier, token_kind, keys, ...device } = body;
    await admitClient(gateway, projectId);
    const {
      device: data,
      credential,
      created: isNew,
    } = await gateway.ask(IdentifyDevice, {
      projectId,
      token,
      ...device,
      ...(await readSubscription(gateway.projects, projectId, device.platform, keys, "keys")),
      ...(token_kind === undefined ? {} : { tokenKind: token_kind }),
      ...(previous_identifier === undefined ? {} : { previousToken: previous_identifier }),
    });
    if (isNew && credential !== undefined) return created({ data, credential });
    return ok({ data });
  },
});

type Change = z.output<typeof ChangeMetadata>;
type Naming = keyof Omit<Change, "metadata">;

/** The body must name the device exactly as the credential leaves it open. All problems at once. */
const checkNaming = (body: Change, required: readonly Naming[], optional: readonly Naming[], who: string): void => {
  const all: readonly Naming[] = ["device_id", "project_id", "identifier", "platform"];
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
  return body.device_id as DeviceId;
};

const changeByToken = async (gateway: Gateway, body: Change): Promise<DeviceSummary> => {
  if (body.project_id === undefined && body.identifier === undefined) {
    throw new HeraldError(
      "unauthenticated",
      "authorization: send a device credential, a project token with `device_id`, or `project_id` and `identifier` in the body",
    );
  }
  checkNaming(body, ["project_id", "identifier"], ["platform"], "client identity");
  const projectId = body.project_id as ProjectId;
  await admitClient(gateway, projectId);
  return gateway.ask(ChangeMetadataByToken, {
    projectId,
    token: body.identifier as string,
    metadata: body.metadata,
    ...(body.platform === undefined ? {} : { platform: body.platform }),
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
      "A JSON Merge Patch (RFC 7396), with PUT as with PATCH: `null` removes a key, the rest is kept. The device is named by a device credential; by `device_id` beside a project token; or, without a credential, by `project_id` and `identifier`, with `platform` where one token is registered on two. Without a credential the answer is the id and the status alone.",
    access: anyClient("devices"),
    cors: true,
    body: ChangeMetadata,
    bodyLimitBytes: clientBodyBytes,
    answers: {
      200: { description: "The metadata is changed", schema: z.object({ data: z.union([Device, DeviceSummary]) }) },
    },
    errors: ["project-not-found", "device-not-found", "ambiguous-device"],
    handle: async (gateway, { caller, body }) => {
      if (caller.kind === "client") return ok({ data: await changeByToken(gateway, body) });
      const deviceId = namedDevice(caller, body);
      const change = { metadata: body.metadata };
      const data = await gateway.ask(ChangeDeviceQuestion, { projectId: caller.projectId, deviceId, change });
      return ok({ data });
    },
  });

export const identificationRoutes = [identify, changeMetadata("patch"), changeMetadata("put")];
