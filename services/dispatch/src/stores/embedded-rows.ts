import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Db } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import type { DeliveryDocument, EmbeddedRow } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection } from "./notification-document.ts";

export const embed = ({
  projectId: _p,
  notificationId: _n,
  lane: _l,
  generation: _g,
  claim: _c,
  claimSequence: _s,
  starts: _t,
  outbox: _o,
  ...row
}: DeliveryDocument): EmbeddedRow => row;

/** The rows that a notification carries, as they would stand in `deliveries`. */
export const rowsOf = ({
  _id,
  projectId,
  rows = [],
  sending,
}: Pick<NotificationDocument, "_id" | "projectId" | "rows" | "sending">): DeliveryDocument[] =>
  rows.map((row) => ({
    ...row,
    projectId,
    notificationId: _id,
    lane: "direct",
    generation: rootGeneration,
    starts: 1,
    ...(sending && { claim: sending.at, claimSequence: sending.sequence }),
  }));

/** The rows that some notifications carry; none of those whose rows are in `deliveries`. */
export const findEmbeddedRows = (db: Db) => {
  const notifications = notificationCollection(db);
  return async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<DeliveryDocument[]> => {
    const found = await notifications
      .find(
        { projectId, _id: { $in: [...ids] } },
        { hint: "_id_", projection: { projectId: 1, rows: 1, sending: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();
    return found.flatMap(rowsOf);
  };
};
