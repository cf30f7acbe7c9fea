import type { DeviceId } from "@herald/contracts";
import type { Collection } from "mongodb";
import { seenEveryMs } from "../domain/device-change.ts";
import { deviceDeactivated, type EventContext } from "../domain/registry-events.ts";
import type { DeviceDocument } from "./device-document.ts";

/** A verdict that arrives sooner is about the current registration. */
const promptVerdictMs = 60_000;
/** The same verdict may be delivered twice within this time. */
const repeatVerdictMs = 60_000;

/**
 * Deactivates a device after a token verdict; false when it did not. A late verdict must not deactivate a device that has registered
 * since. Registrations that change nothing are stored once a day, so a verdict of that day may be older than the last one: the first such
 * verdict sets `doubtedAt`, and the next one, about a later push, deactivates the device unless it has registered in between.
 */
export const retireDevice =
  (devices: Collection<DeviceDocument>) =>
  async (context: EventContext, id: DeviceId, tokenHash: string, at: Date): Promise<boolean> => {
    const { projectId } = context;
    const now = context.at.getTime();
    const filter = { projectId, _id: id, tokenHash, status: "active" as const, tokenUpdatedAt: { $lt: at } };
    const isPrompt = now - at.getTime() < promptVerdictMs;
    const certain = [
      { tokenUpdatedAt: { $lt: new Date(at.getTime() - seenEveryMs) } },
      { doubtedAt: { $lt: new Date(now - repeatVerdictMs) } },
    ];
    const { modifiedCount } = await devices.updateOne(
      { ...filter, ...(isPrompt ? {} : { $or: certain }) },
      {
        $set: { status: "inactive", inactiveReason: "unregistered", inactiveAt: context.at, updatedAt: context.at },
        $unset: { doubtedAt: "" },
        $inc: { version: 1 },
        $push: { outbox: deviceDeactivated(context, id, "unregistered") },
      },
    );
    if (modifiedCount === 0 && !isPrompt)
      await devices.updateOne(
        { ...filter, doubtedAt: { $exists: false } },
        { $set: { doubtedAt: context.at }, $inc: { version: 1 } },
      );
    return modifiedCount > 0;
  };
