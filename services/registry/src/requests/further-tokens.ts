import { handleRequest, type RequestListener } from "@herald/bus";
import {
  type DeviceId,
  deviceRequests,
  isActivityPushKey,
  maxFurtherTokens,
  type ProjectId,
  type PushKey,
  pushTokenHash,
} from "@herald/contracts";
import { existing, HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { noteState, putToken, removeTokens } from "../domain/further-tokens.ts";
import { eventContext, eventsOfChange } from "../domain/registry-events.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { type ChangeDeviceDeps, deviceNotFound } from "./change-device.ts";
import { conflict, retryOnConflict } from "./concurrency.ts";

type StoreDeps = Pick<Deps, "devices" | "publishSoon">;

/** Stores the device with other tokens, with its event. A token that another device took meanwhile is a conflict, too. */
const store = async (
  { devices, publishSoon }: StoreDeps,
  before: DeviceDocument,
  state: DeviceDocument,
  at: Date,
): Promise<typeof conflict | undefined> => {
  const { projectId, _id, status } = before;
  const context = eventContext(projectId, at);
  const events = eventsOfChange(context, _id, { changed: ["tokens"], status, subscribed: [] });
  const after = await devices.change(before, state, { at, events });
  if (after === "conflict" || after === "token-in-use") return conflict;
  publishSoon.devices(projectId, [_id]);
  return undefined;
};

/** Changes the tokens of a device, one change after another. */
const change = (
  deps: ChangeDeviceDeps,
  projectId: ProjectId,
  id: DeviceId,
  plan: (before: DeviceDocument, at: Date) => DeviceDocument | Promise<DeviceDocument | typeof conflict>,
): Promise<undefined> =>
  deps.keyedMutex(id, () =>
    retryOnConflict(async () => {
      const before = existing(await deps.devices.find(projectId, id), deviceNotFound);
      const at = deps.now();
      const state = await plan(before, at);
      if (state === conflict || state === before) return state === conflict ? conflict : undefined;
      return store(deps, before, state, at);
    }),
  );

/** When the app sent the token of an activity; undefined: it is of another type, or the activity's state is on its way to it. */
const cameAt = ({ tokens }: DeviceDocument, key: PushKey): Date | undefined => {
  const token = isActivityPushKey(key) ? tokens?.find((one) => one.key === key) : undefined;
  return token?.hasState ? undefined : token?.at;
};

/** Takes a token from a device that cannot use it any more. @throws HeraldError `token-in-use` if it may. */
const takeFrom = async (deps: StoreDeps, holder: DeviceDocument, device: DeviceDocument, hash: string, at: Date) => {
  const ofOther = holder.userId !== undefined && holder.userId !== device.userId;
  if (holder.status === "active" || ofOther)
    throw new HeraldError("token-in-use", "token.token: another device has it; delete it there, or delete that device");
  return store(
    deps,
    holder,
    removeTokens(holder, (token) => token.hash === hash),
    at,
  );
};

/** Ends a token that its provider called unregistered after the app last sent it. Its device stays. */
export const retireToken = (
  deps: ChangeDeviceDeps,
  projectId: ProjectId,
  { deviceId, tokenHash, at }: { readonly deviceId: DeviceId; readonly tokenHash: string; readonly at: Date },
): Promise<undefined> =>
  deps.keyedMutex(deviceId, () =>
    retryOnConflict(async () => {
      const before = await deps.devices.find(projectId, deviceId);
      if (!before) return undefined;
      const state = removeTokens(before, (token) => token.hash === tokenHash && token.at < at);
      return state === before ? undefined : store(deps, before, state, deps.now());
    }),
  );

export const handleFurtherTokenRequests = (deps: ChangeDeviceDeps & Pick<Deps, "bus">): RequestListener[] => [
  handleRequest(deps.bus, deviceRequests.putToken, async ({ projectId, deviceId, push: key, ...given }) => {
    const hash = pushTokenHash(given.token);
    let since: Date | undefined;
    await change(deps, projectId, deviceId, async (before, at) => {
      if (before.platform !== "ios")
        throw new HeraldError(
          "validation-failed",
          "type: is only for platform ios; Apple's push types have these tokens",
        );
      const holder = await deps.devices.findByFurtherToken(projectId, hash);
      if (holder && holder._id !== deviceId && (await takeFrom(deps, holder, before, hash, at)) === conflict)
        return conflict;
      const state = putToken(before, { key, ...given }, at);
      if (state === "full")
        throw new HeraldError(
          "validation-failed",
          `token: the device already has ${maxFurtherTokens} tokens of push types, the maximum; delete one`,
        );
      since = cameAt(state, key);
      return state;
    });
    return since ? { cameAt: since.toISOString() } : {};
  }),

  handleRequest(deps.bus, deviceRequests.noteState, async ({ projectId, deviceId, push: key, tokenHash }) => {
    await deps.keyedMutex(deviceId, () =>
      retryOnConflict(async () => {
        const before = await deps.devices.find(projectId, deviceId);
        const state = before && noteState(before, key, tokenHash);
        if (!before || !state || state === before) return undefined;
        const after = await deps.devices.change(before, state, { at: before.updatedAt, events: [] });
        return after === "conflict" || after === "token-in-use" ? conflict : undefined;
      }),
    );
    return {};
  }),

  handleRequest(deps.bus, deviceRequests.deleteToken, async ({ projectId, deviceId, push }) => {
    await change(deps, projectId, deviceId, (before) => removeTokens(before, ({ key }) => key === push));
    return {};
  }),
];
