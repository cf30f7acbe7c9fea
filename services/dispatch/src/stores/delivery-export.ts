import {
  type DeliveryStatus,
  type ExportedDelivery,
  firstNotificationId,
  type NotificationId,
  type ProjectId,
} from "@herald/contracts";
import { deadlineOptions, guardStore } from "@herald/mongo";
import type { Db, Filter, WithId } from "mongodb";
import { type DeliveryDocument, deliveryCollection } from "./delivery-document.ts";
import { deliveriesOf, type ProviderIdOf } from "./delivery-list.ts";
import { rowsOf } from "./embedded-rows.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import { packedCount } from "./packed-ids.ts";

type Wanted = {
  readonly projectId: ProjectId;
  /** Absent: all notifications. */
  readonly notificationId?: NotificationId | undefined;
  readonly status?: DeliveryStatus | undefined;
  /** Of the notification, RFC 3339: from this time on, and before that one. */
  readonly createdAfter?: string | undefined;
  readonly createdBefore?: string | undefined;
};

/** Everything up to a device of a row is exported; without a row, everything up to a notification. */
type Position = { readonly id: NotificationId; readonly row?: { readonly id: string; readonly index: number } };

const parsePosition = (after: string): Position => {
  const [rowId = "", index] = after.split(":");
  const id = rowId.split("/")[0] as NotificationId;
  return index === undefined ? { id } : { id, row: { id: rowId, index: Number(index) } };
};

type Step =
  /** A row of the ledger, and its first device that is to be exported. */
  | { readonly row: WithId<DeliveryDocument>; readonly from: number }
  /** A notification is complete. */
  | { readonly done: string };

/** So many devices and notifications are looked at for a page: those of another status count, too. */
const maxLooked = 50_000;
/** Rows have up to a thousand devices. */
const rowsAtATime = 10;
const notificationsAtATime = 200;

const byId = (one: DeliveryDocument, other: DeliveryDocument): number => (one._id < other._id ? -1 : 1);

/** The ledger of a project, or of one notification, as a list of devices that is read in pages, ordered by the ids of rows. */
export const createDeliveryExport = (db: Db, providerIdOf: ProviderIdOf) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const carried = { projectId: 1, rows: 1, sending: 1, queued: 1 } as const;

  const notificationsFrom = (wanted: Wanted, position: Position | undefined) => {
    const { projectId, notificationId, createdAfter, createdBefore } = wanted;
    const bounds: Filter<NotificationDocument>[] = [{ projectId }];
    if (notificationId) bounds.push({ _id: notificationId });
    if (createdAfter) bounds.push({ _id: { $gte: firstNotificationId(new Date(createdAfter)) } });
    if (createdBefore) bounds.push({ _id: { $lt: firstNotificationId(new Date(createdBefore)) } });
    // With a row the notification of the position is not complete.
    if (position) bounds.push({ _id: position.row ? { $gte: position.id } : { $gt: position.id } });
    return notifications
      .find(
        { $and: bounds },
        {
          hint: notificationHints.list,
          projection: carried,
          ...deadlineOptions(),
        },
      )
      .sort({ _id: 1 })
      .batchSize(notificationsAtATime);
  };

  async function* walk(wanted: Wanted, position: Position | undefined): AsyncGenerator<Step> {
    for await (const document of notificationsFrom(wanted, position)) {
      const { _id, projectId } = document;
      const begun = position?.id === _id ? position.row : undefined;
      const first = begun?.id ?? `${_id}/`;
      const stored = document.rows
        ? rowsOf(document)
            .filter(({ _id: id }) => id >= first)
            .sort(byId)
        : deliveries
            // `0` is the character after `/`.
            .find({ _id: { $gte: first, $lt: `${_id}0` }, projectId }, { hint: "_id_", ...deadlineOptions() })
            .sort({ _id: 1 })
            .batchSize(rowsAtATime);
      for await (const row of stored) yield { row, from: row._id === begun?.id ? begun.index + 1 : 0 };
      yield { done: _id };
    }
  }

  return guardStore({
    /** Up to `limit` deliveries after one of them, or after a notification. `next` is null at the end. */
    page: async (
      wanted: Wanted,
      after: string | undefined,
      limit: number,
    ): Promise<{ rows: ExportedDelivery[]; next: string | null }> => {
      const rows: ExportedDelivery[] = [];
      let looked = 0;
      let position = after;
      for await (const step of walk(wanted, after === undefined ? undefined : parsePosition(after))) {
        looked++;
        if ("done" in step) position = step.done;
        else {
          const { row, from } = step;
          const deliveryAt = deliveriesOf(row, providerIdOf);
          for (let index = from; index < packedCount(row.deviceIds); index++) {
            looked++;
            position = `${row._id}:${index}`;
            const delivery = deliveryAt(index);
            if (!delivery || (wanted.status !== undefined && delivery.status !== wanted.status)) continue;
            rows.push({ id: position, notification_id: row.notificationId, ...delivery });
            if (rows.length >= limit) return { rows, next: position };
          }
        }
        if (looked >= maxLooked) return { rows, next: position ?? null };
      }
      return { rows, next: null };
    },
  });
};

export type DeliveryExport = ReturnType<typeof createDeliveryExport>;
