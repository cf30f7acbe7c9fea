import {
  capabilityList,
  type Device,
  type DeviceId,
  fromPushKey,
  type ProjectId,
  servingProvider,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { applyChange } from "../domain/device-change.ts";
import { type Change, type ChangeResult, type DeviceState, seenEveryMs } from "../domain/device-state.ts";
import { topicsOfFacets } from "../domain/facets.ts";
import type { StoredToken } from "../domain/further-tokens.ts";
import { installationKey, maxPerInstallation } from "../domain/installations.ts";
import { eventContext, eventsOfChange } from "../domain/registry-events.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { conflict, retryOnConflict } from "./concurrency.ts";

/** @throws HeraldError `validation-failed`, `user-token-used`. */
export const requireValid = (plan: ChangeResult): Extract<ChangeResult, { state: unknown }> => {
  if ("problems" in plan) throw new HeraldError("validation-failed", plan.problems);
  if ("usedToken" in plan)
    throw new HeraldError(
      "user-token-used",
      "user_token: the device has accepted one that is as new or newer; log in again for a new one",
    );
  return plan;
};

/**
 * Refuses a device that would be one too many of its installation. `before`: the device until now.
 * @throws HeraldError `validation-failed`.
 */
export const requireInstallationRoom = async (
  { devices }: Pick<Deps, "devices">,
  projectId: ProjectId,
  state: DeviceState,
  before?: DeviceState,
): Promise<void> => {
  const key = installationKey(state);
  if (key === undefined || (before !== undefined && key === installationKey(before))) return;
  if ((await devices.countInstalled(projectId, key)) < maxPerInstallation) return;
  throw new HeraldError(
    "validation-failed",
    `installation_id: ${maxPerInstallation} active devices of this platform and user have it, as many as one installation may have; deactivate or delete some, or send the id of another installation`,
  );
};

const tokenView = ({ key, token, environment, channels, at }: StoredToken) => ({
  ...fromPushKey(key),
  token,
  ...(environment && { environment }),
  ...(channels && { channels }),
  registered_at: at.toISOString(),
});

export const deviceView = (device: DeviceDocument): Device => ({
  id: device._id,
  token: device.token,
  platform: device.platform,
  provider: servingProvider(device),
  ...(device.installationId !== undefined && { installation_id: device.installationId }),
  metadata: device.metadata,
  identifiers: device.identifiers,
  status: device.status,
  ...(device.inactiveReason && { inactive_reason: device.inactiveReason }),
  topics: topicsOfFacets(device.facets),
  ...(device.environment && { environment: device.environment }),
  ...(device.app !== undefined && { app: device.app }),
  ...(device.tokens && { tokens: device.tokens.map(tokenView) }),
  ...(device.tokenKind && { token_kind: device.tokenKind }),
  ...(device.vapidKeyId && { vapid_key_id: device.vapidKeyId }),
  ...(device.capabilities && { capabilities: capabilityList(device.capabilities) }),
  user_id: device.userId ?? null,
  ...(device.identifiedAt && { identified_at: device.identifiedAt.toISOString() }),
  ...(device.lastSeenAt && { last_seen_at: device.lastSeenAt.toISOString() }),
  ...(device.lastOpenedAt && { last_opened_at: device.lastOpenedAt.toISOString() }),
  created_at: device.createdAt.toISOString(),
  updated_at: device.updatedAt.toISOString(),
});

export const deviceNotFound = (): HeraldError => notFound("device-not-found", "device");

/** Not awaited: if it fails, the app's next request writes it. */
const recordActive = (
  { devices }: Pick<Deps, "devices">,
  { _id, projectId, lastSeenAt }: DeviceDocument,
  at: Date,
): void => {
  if (lastSeenAt === undefined || at.getTime() - lastSeenAt.getTime() >= seenEveryMs)
    devices.active(projectId, _id, at).catch(() => undefined);
};

export type ChangeDeviceDeps = Pick<Deps, "devices" | "keyedMutex" | "now" | "publishSoon">;

/**
 * Concurrent changes are applied one after another. `ofUser`: fails unless the device belongs to this user. `byApp`: the device itself sent
 * the request, so it counts as seen.
 * @throws HeraldError `device-not-found`, `token-in-use`, `user-token-used`, or `validation-failed` for merged data.
 */
export const changeDevice = (
  deps: ChangeDeviceDeps,
  projectId: ProjectId,
  id: DeviceId,
  change: Change,
  { ofUser, byApp = false }: { readonly ofUser?: string | undefined; readonly byApp?: boolean | undefined } = {},
): Promise<DeviceDocument> =>
  deps.keyedMutex(id, () =>
    retryOnConflict(async () => {
      const before = existing(await deps.devices.find(projectId, id), deviceNotFound);
      if (ofUser !== undefined && before.userId !== ofUser)
        throw notFound("device-not-found", "id", "it is not one of the user's");
      const at = deps.now();
      const plan = requireValid(applyChange(before, change, at));
      if (plan.state === before) {
        if (byApp) recordActive(deps, before, at);
        return before;
      }
      await requireInstallationRoom(deps, projectId, plan.state, before);
      const context = eventContext(projectId, at);
      const { status } = plan.state;
      const events = eventsOfChange(context, id, { changed: plan.changed, status, subscribed: [] });
      const state = byApp ? { ...plan.state, lastSeenAt: at } : plan.state;
      const after = await deps.devices.change(before, state, { at, events });
      if (after === "conflict") return conflict;
      if (after === "token-in-use")
        throw new HeraldError("token-in-use", "device.token: another device holds this push token");
      deps.publishSoon.devices(projectId, [id]);
      return after;
    }),
  );
