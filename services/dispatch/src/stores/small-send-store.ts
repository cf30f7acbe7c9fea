import type { DeliverBatchV1, GroupedSend, NotificationId, OutboxEvent, ProjectId } from "@herald/contracts";
import { findBatched, guardStore, insertBatched, insertMissing, updateBatched } from "@herald/mongo";
import { Binary, type Db, type UpdateFilter } from "mongodb";
import { addFailures, addTallies, noDevices } from "../domain/counts.ts";
import { finalStatus } from "../domain/notification-status.ts";
import type { Settlement } from "../domain/settle-batch.ts";
import { type Claim, deliveryCollection, type EmbeddedRow, newRow, type Run } from "./delivery-document.ts";
import { deliveryEvents } from "./delivery-events.ts";
import { acceptedEventsOf, allAccepted } from "./delivery-store.ts";
import { embed, rowsOf, runsOf, unclaimed } from "./embedded-rows.ts";
import {
  type NotificationDocument,
  type NotificationRecord,
  type NotificationState,
  newDocument,
  newState,
  notificationCollection,
  toRecord,
} from "./notification-document.ts";
import { packNames } from "./packed-names.ts";

/** A send that was just stored, and its batches as they are to be sent; none where it ended at once. */
export type StoredSend = { readonly document: NotificationRecord; readonly runs: readonly Run[] };

/** What a send ended with. Its delivery events in the order of its batches. */
export type EndedSend = {
  readonly final: NonNullable<NotificationState["final"]>;
  readonly events: readonly OutboxEvent[];
  /** Those that the notification carries in its outbox, because nothing else says them. */
  readonly outbox: readonly OutboxEvent[];
};

/**
 * Sends to few devices: the notification and its ledger are one document, written once before the push and once after it. That is for
 * sends that end at once. For whatever else happens {@link moveToDeliveries} moves the ledger to where that of large sends is, and all goes on
 * as with those.
 */
export const createSmallSendStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const insertOne = insertBatched(notifications);
  const updateOne = updateBatched(notifications);

  const findOne = findBatched(notifications);

  return guardStore({
    /**
     * Stores a send with its ledger: being sent for `claim`, or, where there is none, in its project's backlog. Null when it is there
     * already.
     */
    insert: async (
      send: GroupedSend,
      { batches, unmatched }: { batches: readonly DeliverBatchV1[]; unmatched: readonly string[] },
      claim: Claim | undefined,
      now: Date,
    ): Promise<StoredSend | null> => {
      const devices = batches.reduce((sum, batch) => sum + batch.devices.length, 0);
      const { checkAt, ...begun } = newState(send, now);
      const state: NotificationState = {
        ...begun,
        expanded: { batches: batches.length, devices, unmatched: [...unmatched] },
        ...(batches.length === 0
          ? { final: { status: finalStatus(false, noDevices), at: now, tally: noDevices, failures: {} } }
          : claim
            ? { sending: { ...claim, open: true }, ...(checkAt && { checkAt }) }
            : { queued: true }),
      };
      const rows = batches.map((batch) => newRow(batch, { claim: claim ?? unclaimed, now, keepDevices: true }));
      const embedded = rows.map(embed);
      const named = rows.some(({ users }) => users !== undefined);
      const inserted = await insertOne({
        ...newDocument(state, send.content),
        ...(rows.length > 0 && { rows: embedded }),
        ...(named && { named: true as const }),
        ...recipientsOf(batches),
      });
      if (!inserted) return null;
      return { document: { ...state, content: send.content }, runs: runsOf({ ...state, rows: embedded }, now) };
    },

    /**
     * Writes the outcomes and the end of a send whose devices are all final, in one update. Undefined when it was cancelled, given up
     * or taken over meanwhile.
     */
    end: async (
      { _id, projectId }: Pick<NotificationState, "_id" | "projectId">,
      settled: readonly { readonly run: Run; readonly settlement: Settlement }[],
      now: Date,
    ): Promise<EndedSend | undefined> => {
      const tally = settled.reduce((sum, { settlement }) => addTallies(sum, settlement.tally), noDevices);
      const failures = settled.reduce((sum, { settlement }) => addFailures(sum, settlement.failures), {});
      const final = { status: finalStatus(false, tally), at: now, tally, failures };
      const perRow = settled.map(({ run, settlement }) => ({
        whole: allAccepted(settlement),
        events: deliveryEvents(run, run.devices, settlement, now),
      }));
      const outbox = perRow.flatMap(({ whole, events }) => (whole ? [] : events));
      const ended = { final, events: perRow.flatMap(({ events }) => events), outbox };
      const updated = await updateOne(
        { _id, projectId },
        { "sending.open": true, cancelledAt: { $exists: false }, abandonedAt: { $exists: false } },
        {
          $set: {
            final,
            ...(outbox.length > 0 && { outbox }),
            ...Object.assign({}, ...settled.map((one, at) => settledFields(one, at, now))),
          },
          $unset: {
            checkAt: "",
            sending: "",
            ...Object.fromEntries(settled.map((_, at) => [`rows.${at}.devices`, ""])),
          },
        } as UpdateFilter<NotificationDocument>,
      );
      if (updated === "updated") return ended;
      // This one may have been written, or an earlier try whose answer was lost: nothing else leaves the rows with the end.
      const document = await findOne({ _id, projectId });
      return document?.final && document.rows ? { ...ended, final: document.final } : undefined;
    },

    /**
     * Moves the ledger of a send that has not ended to `deliveries`. Repeatable, by any process: what is begun here is completed by
     * the next caller, and the sending process finds that {@link end} no longer applies.
     */
    moveToDeliveries: async (projectId: ProjectId, id: NotificationId): Promise<void> => {
      const key = { _id: id, projectId };
      await notifications.updateOne({ ...key, "sending.open": true }, { $set: { "sending.open": false } });
      await notifications.updateOne(
        { ...key, queued: true, sending: { $exists: false }, rows: { $exists: true }, final: { $exists: false } },
        { $set: { sending: { ...unclaimed, open: false } } },
      );
      const document = await findOne({ _id: id, projectId });
      if (!document?.sending || document.sending.open) return;
      await insertMissing(deliveries, rowsOf(document));
      await notifications.updateOne(
        { _id: id, projectId, "sending.open": false },
        { $unset: { sending: "", rows: "", named: "" } },
      );
    },

    /** The notification as it is, and the events of its rows whose devices were all accepted. Null when it is not there. */
    findWithEvents: async (
      projectId: ProjectId,
      id: NotificationId,
    ): Promise<{ document: NotificationRecord; events: OutboxEvent[] } | null> => {
      const document = await findOne({ _id: id, projectId });
      return document && { document: toRecord(document), events: rowsOf(document).flatMap(acceptedEventsOf) };
    },
  });
};

const recipientsOf = (
  batches: readonly Pick<DeliverBatchV1, "devices">[],
): Pick<NotificationDocument, "recipient" | "recipients"> => {
  const [recipient, ...others] = batches.flatMap(({ devices }) => devices.map(({ id }) => id));
  if (!recipient) return {};
  return others.length === 0 ? { recipient } : { recipients: [recipient, ...others] };
};

export type SmallSendStore = ReturnType<typeof createSmallSendStore>;

/** The fields of a row that its outcomes change: the same for all sends to one device that went well, so one update writes them. */
const settledFields = ({ run, settlement }: { run: Run; settlement: Settlement }, at: number, now: Date) => {
  const { results, resultOf, tally, failures, providerIds } = settlement;
  const names = packNames(Array.from(run.devices, (_, index) => providerIds[index]));
  const fields: Partial<EmbeddedRow> = {
    state: "final",
    results: [...results],
    resultOf: new Binary(resultOf),
    tally,
    failures,
    settledAt: now,
    ...(names !== undefined && { providerIds: names }),
  };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`rows.${at}.${name}`, value]));
};
