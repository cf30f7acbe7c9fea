import type { DeviceId, ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { applyChange, type Change, type ChangeResult, seenEveryMs } from "../domain/device-change.ts";
import { eventContext, eventsOfChange } from "../domain/registry-events.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { conflict, retryOnConflict } from "./retry-on-conflict.ts";

/** @throws HeraldError `validation-failed`, `user-token-used`. */
export const requireValid = (plan: ChangeResult): Extract<ChangeResult, { state: unknown }> => {
  if ("problems" in plan) throw new HeraldError("validation-failed", plan.problems);
  if ("usedToken" in plan)
    throw new HeraldError(
      "user-token-used",
      "user_token: the device has taken one since that was made at the same time or later; log in again for a new one",
    );
  return plan;
};

export const deviceNotFound = (): HeraldError =>
  new HeraldError("device-not-found", "device: the project has none of this id");

/** Not awaited: if it fails, the app's next request writes it. */
const recordActive = ({ devices }: Deps, { _id, projectId, lastSeenAt }: DeviceDocument, at: Date): void => {
  if (lastSeenAt === undefined || at.getTime() - lastSeenAt.getTime() >= seenEveryMs)
    devices.active(projectId, _id, at).catch(() => undefined);
};

/**
 * Concurrent changes are applied one after another. `ofUser`: fails unless the device belongs to this user. `byApp`: the device itself asks,
 * so it was seen.
 * @throws HeraldError `device-not-found`, `token-held`, `user-token-used`, or `validation-failed` for merged data.
 */
export const changeDevice = (
  deps: Deps,
  projectId: ProjectId,
  id: DeviceId,
  change: Change,
  { ofUser, byApp = false }: { readonly ofUser?: string | undefined; readonly byApp?: boolean | undefined } = {},
): Promise<DeviceDocument> =>
  deps.keyedMutex(id, () =>
    retryOnConflict(async () => {
      const before = await deps.devices.find(projectId, id);
      if (!before) throw deviceNotFound();
      if (ofUser !== undefined && before.userId !== ofUser)
        throw new HeraldError("device-not-found", "id: the user has no such device");
      const at = deps.now();
      const plan = requireValid(applyChange(before, change, at));
      if (plan.state === before) {
        if (byApp) recordActive(deps, before, at);
        return before;
      }
      const context = eventContext(projectId, at);
      const { status } = plan.state;
      const events = eventsOfChange(context, id, { changed: plan.changed, status, subscribed: [] });
      const state = byApp ? { ...plan.state, lastSeenAt: at } : plan.state;
      const after = await deps.devices.change(before, state, { at, events });
      if (after === "conflict") return conflict;
      if (after === "token-held")
        throw new HeraldError("token-held", "device.token: another device holds this push token");
      deps.publishQueue.devices(projectId, [id]);
      return after;
    }),
  );
