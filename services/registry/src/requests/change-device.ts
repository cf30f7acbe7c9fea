import { randomUUID } from "node:crypto";
import type { DeviceId, ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type Change, type Changed, changed } from "../domain/device-change.ts";
import { eventsOfChange } from "../domain/registry-events.ts";
import type { KeyedMutex } from "../keyed-mutex.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import { again, retryOnConflict } from "./retry-on-conflict.ts";

export type ChangeParts = {
  readonly devices: DeviceStore;
  readonly announce: Announce;
  readonly keyedMutex: KeyedMutex;
  readonly now: () => Date;
};

/** What a change comes to. @throws HeraldError `validation-failed`, `user-token-used`. */
export const allowed = (plan: Changed): Extract<Changed, { state: unknown }> => {
  if ("problems" in plan) throw new HeraldError("validation-failed", plan.problems);
  if ("usedToken" in plan)
    throw new HeraldError(
      "user-token-used",
      "user_token: the device has taken one since that was made at the same time or later; log in again for a new one",
    );
  return plan;
};

export const noDevice = (): HeraldError =>
  new HeraldError("device-not-found", "device: the project has none of this id");

/**
 * Changes a known device; each of two changes at the same time is made to what the other left.
 * `ofUser`: only while it is that user's.
 * @throws HeraldError `device-not-found`, `token-held`, `user-token-used`, or `validation-failed` for what merging made of the data.
 */
export const changeDevice = (
  parts: ChangeParts,
  projectId: ProjectId,
  id: DeviceId,
  change: Change,
  ofUser?: string,
): Promise<DeviceDocument> =>
  parts.keyedMutex(id, () =>
    retryOnConflict(async () => {
      const before = await parts.devices.find(projectId, id);
      if (!before) throw noDevice();
      if (ofUser !== undefined && before.userId !== ofUser)
        throw new HeraldError("device-not-found", "id: the user has no such device");
      const at = parts.now();
      const plan = allowed(changed(before, change, at));
      if (plan.state === before) return before;
      const occasion = { projectId, at, newId: randomUUID };
      const { status } = plan.state;
      const events = eventsOfChange(occasion, id, { changed: plan.changed, status, subscribed: [] });
      const after = await parts.devices.change(before, plan.state, { at, events });
      if (after === "conflict") return again;
      if (after === "token-held")
        throw new HeraldError("token-held", "device.token: another device holds this push token");
      parts.announce.devices(projectId, [id]);
      return after;
    }),
  );
