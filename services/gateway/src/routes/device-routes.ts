import {
  ChangeDevice,
  ChangeDeviceRequest,
  DeleteDevice,
  Device,
  DeviceListQuery,
  GetDevice,
  ListDevices,
  pageOf,
  RegisterDevice,
  RegisterDeviceRequest,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { type CallerOf, project, projectOrDevice } from "../auth/caller.ts";
import { ownDevice } from "../auth/own-device.ts";
import { rejectProtected } from "../auth/protected-metadata.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import type { ProjectDirectory } from "../records/project-directory.ts";
import { readSubscription } from "../records/read-subscription.ts";
import { deviceParam } from "./path-params.ts";

const Registered = z.object({
  data: Device,
  credential: z
    .string()
    .optional()
    .meta({ description: "The device's credential; absent when a response is replayed" }),
});

const listDevices = defineRoute({
  method: "get",
  path: "/api/v1/devices",
  operationId: "listDevices",
  tag: "Devices",
  summary: "List devices",
  description:
    "Oldest first, unless `sort` says otherwise. Filters combine: a device must fit all of them. `match` takes a target and lists the devices that a send to it reaches.",
  access: project("read"),
  query: DeviceListQuery,
  responses: { 200: { description: "A page of devices", schema: pageOf(Device) } },
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    const { status, platform, user_id, token, match, ...query } = request.query;
    const filter = { status, platform, user_id, token, match };
    const page = pageRequest(match === undefined ? query : { ...query, after: query.after ?? "" });
    return pageReply(request, await sendRequest(ListDevices, { projectId, ...filter, page }));
  },
});

const registerDevice = defineRoute({
  method: "post",
  path: "/api/v1/devices",
  operationId: "registerDevice",
  tag: "Devices",
  summary: "Register a device, or register a known one again",
  description: "A known device keeps its id: metadata is merged, topics are added, the credential is rotated.",
  access: project("devices"),
  body: RegisterDevice,
  responses: {
    200: { description: "The device was known", schema: Registered },
    201: { description: "The device is new", schema: Registered },
  },
  errors: ["topic-exists", "device-quota-exceeded"],
  handle: async ({ sendRequest, projects }, { caller: { projectId }, body, idempotent }) => {
    const { token_kind, topics = [], keys, user_id: userId, installation_id, ...device } = body.device;
    const perform = async () => {
      const {
        device: data,
        credential,
        created: isNew,
      } = await sendRequest(RegisterDeviceRequest, {
        projectId,
        ...device,
        ...(await readSubscription(projects, projectId, servingProvider(device), keys, "device.keys")),
        topics,
        ...(userId === undefined ? {} : { userId }),
        ...(token_kind === undefined ? {} : { tokenKind: token_kind }),
        ...(installation_id === undefined ? {} : { installationId: installation_id }),
      });
      const answer = { data, credential };
      return isNew ? created(answer) : ok(answer);
    };
    // Registry finds the device by its push token, so a repeat is harmless without an id.
    return idempotent({ newId: () => "", perform });
  },
});

const getDevice = defineRoute({
  method: "get",
  path: "/api/v1/devices/{id}",
  operationId: "getDevice",
  tag: "Devices",
  summary: "Read a device",
  access: projectOrDevice("read"),
  params: { id: deviceParam },
  responses: { 200: { description: "The device", schema: z.object({ data: Device }) } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, { caller, params }) =>
    ok({ data: await sendRequest(GetDevice, { projectId: caller.projectId, deviceId: ownDevice(caller, params.id) }) }),
});

/** A project token may name the user; a device must prove it, and cannot write protected values. */
const checkSpeaker = async (
  projects: ProjectDirectory,
  caller: CallerOf<"project" | "device">,
  { user_id, user_token, metadata, identifiers }: z.output<typeof ChangeDevice>["device"],
): Promise<void> => {
  if (caller.kind === "project") {
    if (user_token === undefined) return;
    throw new HeraldError(
      "validation-failed",
      "device.user_token: is not accepted with a project token; send `user_id` instead",
    );
  }
  if (user_id !== undefined)
    throw new HeraldError(
      "forbidden",
      "device.user_id: needs a project token; a device sends a `user_token`, and logs out with DELETE /api/v1/devices/{id}/user",
    );
  rejectProtected({ metadata, identifiers }, (await projects.settings(caller.projectId)).protectedMetadata);
};

const changeDevice = defineRoute({
  method: "patch",
  path: "/api/v1/devices/{id}",
  operationId: "changeDevice",
  tag: "Devices",
  summary: "Change a device",
  description:
    "`metadata` and `identifiers` are JSON Merge Patches (RFC 7396): `null` removes a key, other keys stay. A new Web Push subscription needs its `keys` beside its `token`.",
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  body: ChangeDevice,
  responses: { 200: { description: "The changed device", schema: z.object({ data: Device }) } },
  errors: ["device-not-found", "token-held", "metadata-protected", "user-token-invalid", "user-token-used"],
  handle: async ({ sendRequest, projects }, { caller, params, body }) => {
    const { projectId } = caller;
    const deviceId = ownDevice(caller, params.id);
    await checkSpeaker(projects, caller, body.device);
    const { keys: given, ...rest } = body.device;
    const { keys, ...subscribedWith } = await readSubscription(projects, projectId, undefined, given, "device.keys");
    const change = { ...rest, ...(keys && { keys }) };
    return ok({
      data: await sendRequest(ChangeDeviceRequest, {
        projectId,
        deviceId,
        change,
        ...subscribedWith,
        byApp: caller.kind === "device",
      }),
    });
  },
});

const deleteDevice = defineRoute({
  method: "delete",
  path: "/api/v1/devices/{id}",
  operationId: "deleteDevice",
  tag: "Devices",
  summary: "Delete a device",
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  responses: { 204: { description: "The device is deleted" } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, { caller, params }) => {
    await sendRequest(DeleteDevice, { projectId: caller.projectId, deviceId: ownDevice(caller, params.id) });
    return noContent();
  },
});

export const deviceRoutes = [listDevices, registerDevice, getDevice, changeDevice, deleteDevice];
