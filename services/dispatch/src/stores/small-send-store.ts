import type { DeliverBatchV1, GroupedSend, NotificationId, OutboxEvent, ProjectId } from "@herald/contracts";
import { findBatched, guardStore, insertBatched, insertMissing, updateBatched } from "@herald/mongo";
import { Binary, type Db } from "mongodb";
import { addFailures, addTallies, emptyTally, type FinalStatus } from "../domain/notification-counts.ts";
import type { RuleResults } from "../domain/rule-results.ts";
import type { Settlement } from "../domain/settle-row.ts";
import {
  type Claim,
  type DeliveryDocument,
  deliveryCollection,
  type EmbeddedRow,
  newRow,
  ownersOf,
  packNames,
  type Run,
  runOf,
} from "./delivery-document.ts";
import { acceptedEventsOf, allAccepted, deliveryEvents } from "./events.ts";
import {
  type Expanded,
  type NotificationDocument,
  type NotificationRecord,
  type NotificationState,
  newDocument,
  newFacts,
  notificationCollection,
  toRecord,
} from "./notification-document.ts";
import { ended, firstStepOfSmall, toDeliveringMoved, toEndOfSmall } from "./notification-steps.ts";
import { embeddedRows, type RowSource } from "./rows.ts";

/** A row as it is stored in its notification. */
const embed = ({
  projectId: _p,
  notificationId: _n,
  lane: _l,
  generation: _g,
  tags: _k,
  claim: _c,
  starts: _t,
  outbox: _o,
  ...row
}: DeliveryDocument): EmbeddedRow => row;

/** A batch, and the results of the rules for its devices. */
export type EvaluatedBatch = DeliverBatchV1 & { readonly ruleResults?: RuleResults | undefined };

/** Whom a send reaches: see {@link Expanded}. */
type EvaluatedAudience = Pick<Expanded, "list"> & {
  readonly batches: readonly EvaluatedBatch[];
  readonly unmatched: readonly string[];
};

/** A send that was just stored, and its batches to send: none when it ended at once. */
export type StoredSend = { readonly document: NotificationRecord; readonly runs: readonly Run[] };

/**
 * Sends to few devices. The notification and its ledger are one document, written once before the push and once after it, if the send
 * ends at once. In any other case {@link moveToDeliveries} moves the ledger to `deliveries`, and the send continues as a large send.
 */
export const createSmallSendStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const insertOne = insertBatched(notifications);
  const updateOne = updateBatched(notifications);

  const findOne = findBatched(notifications);
  const findRows = findBatched<NotificationDocument, Exclude<keyof NotificationDocument, "content" | "personal">>(
    notifications,
    { content: 0, personal: 0 },
  );

  /**
   * Moves the ledger of a send that has not ended to `deliveries`. Repeatable, by any process: after a crash, the next caller
   * completes the move. For the process that sends it, {@link end} then resolves to undefined.
   */
  const moveToDeliveries = async (projectId: ProjectId, id: NotificationId): Promise<void> => {
    const key = { _id: id, projectId };
    await notifications.updateOne({ ...key, "claim.open": true }, { $set: { "claim.open": false } });
    const document = await findRows(key);
    if (!document?.claim || document.claim.open) return;
    await insertMissing(deliveries, embeddedRows(document));
    await notifications.updateOne({ ...key, ...toDeliveringMoved.filter }, toDeliveringMoved.update);
  };

  return guardStore({
    /**
     * Stores a send with its ledger, started for the message in `claim`. Null when it already exists: its `_id` decides which process
     * sends it.
     */
    insert: async (
      send: GroupedSend,
      { batches, unmatched, list }: EvaluatedAudience,
      claim: Claim,
      now: Date,
    ): Promise<StoredSend | null> => {
      const devices = batches.reduce((sum, batch) => sum + batch.devices.length, 0);
      const state: NotificationState = {
        ...newFacts(send),
        expanded: { batches: batches.length, devices, unmatched: [...unmatched], ...(list && { list }) },
        ...firstStepOfSmall(batches.length, claim, now),
      };
      const rows = batches.map((batch) =>
        newRow(batch, { claim, now, keepDevices: true, tags: state.tags, ruleResults: batch.ruleResults }),
      );
      const named = rows.some(({ users }) => users !== undefined);
      const inserted = await insertOne({
        ...newDocument(state, send, unmatched),
        ...(rows.length > 0 && { rows: rows.map(embed) }),
        ...(named && { named: true as const }),
        ...recipientsOf(batches),
      });
      if (!inserted) return null;
      const document = { ...state, content: send.content, ...(send.personal && { personal: send.personal }) };
      return { document, runs: rows.map((row) => runOf(row, now)) };
    },

    /**
     * Writes the outcomes and the end of a send whose devices are all final, in one update. Undefined when it was cancelled, abandoned
     * or taken over in the meantime. Resolves to its final state, its delivery events in the order of its batches, and those of them in the
     * notification's outbox, because they cannot be rebuilt from its rows.
     */
    end: async (
      { _id, projectId }: Pick<NotificationState, "_id" | "projectId">,
      settled: readonly { readonly run: Run; readonly settlement: Settlement }[],
      now: Date,
    ) => {
      const tally = settled.reduce((sum, { settlement }) => addTallies(sum, settlement.tally), emptyTally);
      const failures = settled.reduce((sum, { settlement }) => addFailures(sum, settlement.failures), {});
      const state = ended(undefined, { at: now, tally, failures });
      const perRow = settled.map(({ run, settlement }) => ({
        whole: allAccepted(settlement),
        events: deliveryEvents(run, run.devices, settlement, now),
      }));
      const outbox = perRow.flatMap(({ whole, events }) => (whole ? [] : events));
      const result = { state, events: perRow.flatMap(({ events }) => events), stored: outbox };
      const { filter, update } = toEndOfSmall(
        state,
        {
          ...(outbox.length > 0 && { outbox }),
          ...Object.assign({}, ...settled.map((one, at) => settledFields(one, at, now))),
        },
        Object.fromEntries(settled.map((_, at) => [`rows.${at}.devices`, ""])),
      );
      if ((await updateOne({ _id, projectId }, filter, update)) === "updated") return result;
      // This update or an earlier try may have succeeded although its response was lost: no other update ends a send that still has rows.
      const document = await findRows({ _id, projectId });
      return document?.end && document.rows
        ? { ...result, state: { status: document.status as FinalStatus, end: document.end } }
        : undefined;
    },

    moveToDeliveries,

    /**
     * Changes the owners of the rows of a send that has ended. Rows of a send that has not ended move to `deliveries`. `change`: the packed
     * owners of a row after the change; undefined: the same as before.
     */
    eraseOwners: async (
      document: RowSource & Pick<NotificationDocument, "step">,
      change: (owners: readonly (string | undefined)[]) => string | undefined,
    ): Promise<void> => {
      const { _id, projectId, rows = [] } = document;
      if (document.step === "sending") return moveToDeliveries(projectId, _id);
      const changes = rows.flatMap((row, at): [string, string][] => {
        const users = change(ownersOf(row));
        return users === undefined ? [] : [[`rows.${at}.users`, users]];
      });
      if (changes.length > 0) await notifications.updateOne({ _id, projectId }, { $set: Object.fromEntries(changes) });
    },

    /** The stored notification, and the events of its rows whose devices were all accepted. Null when it does not exist. */
    findWithEvents: async (
      projectId: ProjectId,
      id: NotificationId,
    ): Promise<{ document: NotificationRecord; events: OutboxEvent[] } | null> => {
      const document = await findOne({ _id: id, projectId });
      return document && { document: toRecord(document), events: embeddedRows(document).flatMap(acceptedEventsOf) };
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

/** The row fields that outcomes change. They are equal for all accepted sends to one device, so one update writes them for many. */
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
