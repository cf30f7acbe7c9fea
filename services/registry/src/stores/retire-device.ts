import type { DeviceId } from "@herald/contracts";
import type { Collection } from "mongodb";
import { seenEveryMs } from "../domain/device-change.ts";
import { deviceDeactivated, type Occasion } from "../domain/registry-events.ts";
import type { DeviceDocument } from "./device-document.ts";

/** A verdict that comes sooner is about the present registration: nobody registers anew while the provider answers. */
const promptMs = 60_000;
/** The same verdict may come twice within that. */
const repeatedMs = 60_000;

/**
 * Retires a device for a provider's verdict about its token; false where it is not. Only the registration that the verdict was about: a
 * late one must not retire a device that has since registered again. A device that registers as it is, is written once a day, so a late
 * verdict from that day may be older than its last registration: the first such makes it doubted, and the next one, to a later
 * push, retires it unless it has registered in between.
 */
export const retireDevice =
  (devices: Collection<DeviceDocument>) =>
  async (occasion: Occasion, id: DeviceId, tokenHash: string, at: Date): Promise<boolean> => {
    const { projectId } = occasion;
    const now = occasion.at.getTime();
    const about = { projectId, _id: id, tokenHash, status: "active" as const, tokenUpdatedAt: { $lt: at } };
    const isPrompt = now - at.getTime() < promptMs;
    const certain = [
      { tokenUpdatedAt: { $lt: new Date(at.getTime() - seenEveryMs) } },
      { doubtedAt: { $lt: new Date(now - repeatedMs) } },
    ];
    const { modifiedCount } = await devices.updateOne(
      { ...about, ...(isPrompt ? {} : { $or: certain }) },
      {
        $set: { status: "inactive", inactiveReason: "unregistered", inactiveAt: occasion.at, updatedAt: occasion.at },
        $unset: { doubtedAt: "" },
        $inc: { version: 1 },
        $push: { outbox: deviceDeactivated(occasion, id, "unregistered") },
      },
    );
    if (modifiedCount === 0 && !isPrompt)
      await devices.updateOne(
        { ...about, doubtedAt: { $exists: false } },
        { $set: { doubtedAt: occasion.at }, $inc: { version: 1 } },
      );
    return modifiedCount > 0;
  };
