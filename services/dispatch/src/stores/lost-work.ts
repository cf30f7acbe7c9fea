import type { NotificationId, ProjectId } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import type { Sendable } from "../domain/settle-batch.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints } from "./delivery-document.ts";

/** A row that is being sent, or was when its process died. */
export type StartedRow = Pick<
  DeliveryDocument,
  "_id" | "projectId" | "claim" | "claimSequence" | "starts" | "deviceIds" | "users" | "devices"
>;

/** Five hundred devices with their tokens each. */
const maxRows = 50;
const fields = {
  projectId: 1,
  claim: 1,
  claimSequence: 1,
  starts: 1,
  deviceIds: 1,
  users: 1,
  devices: 1,
} as const;

/** Rows of notifications whose messages are gone. */
export const createLostWork = (db: Db) => {
  const deliveries = deliveryCollection(db);

  return guardStore({
    /** Some rows of a notification that were started before then and have no outcome. */
    started: (projectId: ProjectId, notificationId: NotificationId, before: Date): Promise<StartedRow[]> =>
      deliveries
        .find(
          { projectId, notificationId, state: "started", startedAt: { $lt: before } },
          { hint: deliveryHints.finish, projection: fields },
        )
        .limit(maxRows)
        .toArray(),

    /**
     * Has a started row wait for its devices to be sent to again, at once. False when somebody has settled or started it since it was
     * read. A process that still sends for it can no longer settle it.
     */
    release: async (row: StartedRow, devices: readonly Sendable[], now: Date): Promise<boolean> => {
      const { _id, projectId, starts, claim, claimSequence } = row;
      const { modifiedCount } = await deliveries.updateOne(
        { _id, projectId, state: "started", starts, claim: claim ?? 0, claimSequence: claimSequence ?? null },
        {
          $set: { state: "waiting", devices: [...devices], dueAt: now, notBefore: new Date(0) },
          $unset: { claim: "", claimSequence: "" },
        },
      );
      return modifiedCount === 1;
    },

    /** How many batches of a notification have a row. */
    countRoots: (projectId: ProjectId, notificationId: NotificationId): Promise<number> =>
      deliveries.countDocuments(
        { projectId, notificationId, generation: rootGeneration },
        { hint: deliveryHints.finish },
      ),
  });
};

export type LostWork = ReturnType<typeof createLostWork>;
