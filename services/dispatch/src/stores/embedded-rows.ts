import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Db } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import { type Claim, type DeliveryDocument, type EmbeddedRow, factsOf, type Run } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection } from "./notification-document.ts";

export const embed = ({
  projectId: _p,
  notificationId: _n,
  lane: _l,
  generation: _g,
  tags: _k,
  claim: _c,
  claimSequence: _s,
  starts: _t,
  outbox: _o,
  ...row
}: DeliveryDocument): EmbeddedRow => row;

type Carrier = Pick<NotificationDocument, "_id" | "projectId" | "rows" | "sending" | "queued" | "tags">;

/** The claim of rows that move from a backlog to `deliveries` before anybody began to send them. */
export const unclaimed: Claim = { at: -1, sequence: -1 };

/** The rows that a notification carries, as they would stand in `deliveries`. */
export const rowsOf = ({ _id, projectId, rows = [], sending, queued, tags }: Carrier): DeliveryDocument[] => {
  const waits = sending ? sending.at === unclaimed.at : queued;
  return rows.map((row) => ({
    ...row,
    projectId,
    notificationId: _id,
    lane: "direct",
    generation: rootGeneration,
    ...(tags && { tags }),
    ...(waits && row.state === "started" ? { state: "waiting", dueAt: row.storedAt, starts: 0 } : { starts: 1 }),
    ...(sending && !waits && { claim: sending.at, claimSequence: sending.sequence }),
  }));
};

/** The same as they are sent for the first time. */
export const runsOf = (document: Omit<Carrier, "sending" | "queued">, startedAt: Date): Run[] =>
  rowsOf(document).map((row) => ({ ...factsOf(row), startedAt, starts: 1, devices: row.devices ?? [] }));

/** The rows that some notifications carry; none of those whose rows are in `deliveries`. */
export const findEmbeddedRows = (db: Db) => {
  const notifications = notificationCollection(db);
  return async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<DeliveryDocument[]> => {
    const found = await notifications
      .find(
        { projectId, _id: { $in: [...ids] } },
        { hint: "_id_", projection: { projectId: 1, rows: 1, sending: 1, queued: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();
    return found.flatMap(rowsOf);
  };
};
