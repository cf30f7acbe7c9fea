import {
  ActivityId,
  audienceRequests,
  type DeviceId,
  deviceRequests,
  fromPushKey,
  furtherTokenKey,
  type PushName,
  PutFurtherToken,
  pushNameProblem,
  pushTokenHash,
  type TokenType,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type CallerOf, projectOrDevice } from "../auth/caller.ts";
import type { RequestDeps, RouteDeps } from "../deps.ts";
import { noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { type ChargeDeps, chargeState } from "../sending/send-operation.ts";

type Params = { readonly id: DeviceId; readonly type: TokenType; readonly name?: PushName };

const activityProblem = (name: string | undefined) => ActivityId.safeParse(name).error?.issues[0]?.message;

/** What a request names. Throws validation-failed for a name that the type does not have. */
const named = (caller: CallerOf<"project" | "device">, { id, type, name }: Params) => {
  const problem = pushNameProblem(type, name) ?? (type === "activity" ? activityProblem(name) : undefined);
  if (problem !== undefined) throw new HeraldError("validation-failed", `name: ${problem}`);
  return {
    projectId: caller.projectId,
    deviceId: id,
    push: furtherTokenKey(type, name),
    byApp: caller.kind === "device",
  };
};

type JoinDeps = ChargeDeps & RequestDeps & Pick<RouteDeps, "activities">;

/**
 * Sends an activity's state to a token that came late, if the activity is for the device. Counts as a send, unless one is on its way. Without
 * a send left nothing is sent: the token is stored, and a repeat of it asks again.
 */
const join = async (deps: JoinDeps, { projectId, deviceId, push, token }: Asked, at: string): Promise<void> => {
  const key = { projectId, id: fromPushKey(push).name ?? "" };
  const record = await deps.activities.find(key);
  if (!record) return;
  const { targets, app } = record;
  const asked = { projectId, deviceId, targets, push, ...(app !== undefined && { app }) };
  const { matched, otherApp, noToken } = await deps.sendRequest(audienceRequests.explain, asked);
  if (matched === undefined || otherApp || noToken) return;
  const { granted, refund } = await chargeState(deps, projectId);
  if (granted === 0) return;
  const tokenHash = pushTokenHash(token);
  let isNew = false;
  try {
    isNew = await deps.activities.join(key, record, { deviceId, tokenHash, at });
  } finally {
    if (!isNew) await refund();
  }
  await deps.sendRequest(deviceRequests.noteState, { projectId, deviceId, push, tokenHash });
};

type Asked = ReturnType<typeof named> & { readonly token: string };

const put = {
  tag: "Devices",
  description:
    "The token that iOS gave the app for pushes of this type, such as PushKit's for `voip`. A send with the same `push_type` goes to it. A token that the device has for another type moves. When Apple calls it unregistered, it ends alone: the device stays active. `liveactivity/<attributes_type>` has the token that starts activities, `activity/<id>` the one that updates an activity: it gets the current state at once, or within a minute if its device has it already, which counts as a send. While the quota of sends is used up the token is stored alone: the state follows with the activity's next version, or with a repeat of this request. It expires after 13 hours, and goes when the user of the device changes.",
  access: projectOrDevice("devices"),
  body: PutFurtherToken,
  responses: { 204: { description: "The token is stored" } },
  errors: ["token-in-use"],
} as const;

const remove = {
  tag: "Devices",
  access: projectOrDevice("devices"),
  responses: { 204: { description: "The device has no such token" } },
} as const;

export const furtherTokenRoutes = [
  defineRoute("putDeviceToken", "put /api/v1/devices/{id}/tokens/{type}", {
    ...put,
    summary: "Store a device's token of a push type",
    handle: async ({ sendRequest }, { caller, params, body: { token } }) =>
      sendRequest(deviceRequests.putToken, { ...named(caller, params), ...token }).then(noContent),
  }),
  defineRoute("deleteDeviceToken", "delete /api/v1/devices/{id}/tokens/{type}", {
    ...remove,
    summary: "Delete a device's token of a push type",
    handle: async ({ sendRequest }, { caller, params }) =>
      sendRequest(deviceRequests.deleteToken, named(caller, params)).then(noContent),
  }),
  defineRoute("putControlToken", "put /api/v1/devices/{id}/tokens/{type}/{name}", {
    ...put,
    summary: "Store the token of a control or a Live Activity",
    handle: async (deps, { caller, params, body: { token } }) => {
      const asked = { ...named(caller, params), ...token };
      const { cameAt } = await deps.sendRequest(deviceRequests.putToken, asked);
      if (cameAt !== undefined) await join(deps, asked, cameAt);
      return noContent();
    },
  }),
  defineRoute("deleteControlToken", "delete /api/v1/devices/{id}/tokens/{type}/{name}", {
    ...remove,
    summary: "Delete the token of a control or a Live Activity",
    handle: async ({ sendRequest }, { caller, params }) =>
      sendRequest(deviceRequests.deleteToken, named(caller, params)).then(noContent),
  }),
];
