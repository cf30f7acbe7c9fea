import type { DeliverBatchV1, GroupedSend, NotificationId, OutboxEvent, ProjectId } from "@herald/contracts";
import { findBatched, guardStore, insertBatched, insertMissing, updateBatched } from "@herald/mongo";
import { Binary, type Db } from "mongodb";
import { addFailures, addTallies, emptyTally, type FinalStatus } from "../domain/notification-counts.ts";
import type { RuleResults } from "../domain/rule-results.ts";
import { type Settlement, usualResult } from "../domain/settle-row.ts";
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
  type End,
  type Expanded,
  escalationOf,
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

type SendKey = Pick<GroupedSend, "projectId" | "notificationId">;

/** A send, and whom it reaches: see {@link Expanded}. */
export type ResolvedSend = Pick<Expanded, "list"> & {
  readonly send: GroupedSend;
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
  const insert = insertBatched(notifications);
  const update = updateBatched(notifications);

  const find = findBatched(notifications);
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
     * Stores sends with their ledgers, started for the message in `claim`, in one command. The result of each is null when it already exists:
     * its `_id` decides which process sends it.
     */
    insertEach: async (
      sends: readonly ResolvedSend[],
      claim: Claim,
      now: Date,
    ): Promise<PromiseSettledResult<StoredSend | null>[]> => {
      const made = sends.map((send) => attempt(() => documentOf(send, claim, now)));
      const inserted = await insert.all(made.flatMap((one) => fulfilledWith(one)?.document ?? []));
      let next = 0;
      return made.map((one) => {
        if (one.status === "rejected") return one;
        const { done, error } = inserted[next++] ?? { done: false };
        if (error !== undefined) return { status: "rejected", reason: error };
        return { status: "fulfilled", value: done ? one.value.stored : null };
      });
    },

    /**
     * Writes the outcomes and the ends of sends whose devices are all final, in one command. The result of each is undefined when it was
     * cancelled, abandoned or taken over in the meantime. Repeatable.
     */
    endEach: async (
      sends: readonly SettledSend[],
      now: Date,
    ): Promise<PromiseSettledResult<EndedSend | undefined>[]> => {
      const ends = sends.map((send) => attempt(() => endOf(send, now)));
      const updates = ends.flatMap((end) => fulfilledWith(end)?.update ?? []);
      const updated = await update.all(updates);
      const unknown = updates.filter((_, at) => fulfilledWith(updated[at]) !== "updated");
      // This update or an earlier try may have succeeded although its response was lost: no other update ends a send that still has rows.
      const read = await findRows.all(unknown.map(({ key }) => key));
      const found = new Map(unknown.map((one, at) => [one, read[at]]));
      let next = 0;
      return ends.map((one) => {
        if (one.status === "rejected") return one;
        const { update, ended: result } = one.value;
        const written = updated[next++];
        const late = found.get(update);
        if (late === undefined) return { status: "fulfilled", value: result };
        if (late.status === "rejected") return late;
        const { end, rows, status } = late.value ?? {};
        if (end && rows)
          return { status: "fulfilled", value: { ...result, state: { status: status as FinalStatus, end } } };
        return written?.status === "rejected" ? written : { status: "fulfilled", value: undefined };
      });
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

    /** The stored notification, with the events of its rows whose devices were all accepted. Null: it does not exist. */
    find: async ({ projectId, notificationId: _id }: SendKey): Promise<FoundSend | null> => {
      const document = await find({ _id, projectId });
      return document && foundOf(document);
    },

    /** {@link find} for several sends, in one command. */
    findEach: async (sends: readonly SendKey[]): Promise<PromiseSettledResult<FoundSend | null>[]> =>
      (await find.all(sends.map(({ projectId, notificationId: _id }) => ({ _id, projectId })))).map((found) =>
        found.status === "rejected" ? found : { status: "fulfilled", value: found.value && foundOf(found.value) },
      ),
  });
};

/** A stored send, and the outcomes of its batches. */
export type SettledSend = {
  readonly document: Pick<NotificationState, "_id" | "projectId">;
  readonly settled: readonly { readonly run: Run; readonly settlement: Settlement }[];
};

/**
 * The end of a send: its final state, its delivery events in the order of its batches, and those of them in the notification's outbox,
 * because they cannot be rebuilt from its rows.
 */
export type EndedSend = {
  readonly state: ReturnType<typeof ended> | { readonly status: FinalStatus; readonly end: End };
  readonly events: readonly OutboxEvent[];
  readonly stored: readonly OutboxEvent[];
};

export type FoundSend = { readonly document: NotificationRecord; readonly events: readonly OutboxEvent[] };

const foundOf = (document: NotificationDocument): FoundSend => ({
  document: toRecord(document),
  events: embeddedRows(document).flatMap(acceptedEventsOf),
});

/** The result of one of several, so that an error fails only that one. */
const attempt = <Value>(make: () => Value): PromiseSettledResult<Value> => {
  try {
    return { status: "fulfilled", value: make() };
  } catch (reason) {
    return { status: "rejected", reason };
  }
};

const fulfilledWith = <Value>(result: PromiseSettledResult<Value> | undefined): Value | undefined =>
  result?.status === "fulfilled" ? result.value : undefined;

const documentOf = (
  { send, batches, unmatched, list }: ResolvedSend,
  claim: Claim,
  now: Date,
): { readonly document: NotificationDocument; readonly stored: StoredSend } => {
  const devices = batches.reduce((sum, batch) => sum + batch.devices.length, 0);
  const state: NotificationState = {
    ...newFacts(send),
    // It may have waited in a backlog.
    ...escalationOf(send.content.escalate_after, now),
    expanded: { batches: batches.length, devices, unmatched: [...unmatched], ...(list && { list }) },
    ...firstStepOfSmall(batches.length, claim, now),
  };
  const rows = batches.map((batch) =>
    newRow(batch, { claim, now, keepDevices: true, tags: state.tags, ruleResults: batch.ruleResults }),
  );
  const named = rows.some(({ users }) => users !== undefined);
  const document = {
    ...newDocument(state, send, unmatched),
    ...(rows.length > 0 && { rows: rows.map(embed) }),
    ...(named && { named: true as const }),
    ...recipientsOf(batches),
  };
  const record = { ...state, content: send.content, ...(send.personal && { personal: send.personal }) };
  return { document, stored: { document: record, runs: rows.map((row) => runOf(row, now)) } };
};

/** The update that ends a send, and what it says. */
const endOf = ({ document: { _id, projectId }, settled }: SettledSend, now: Date) => {
  const tally = settled.reduce((sum, { settlement }) => addTallies(sum, settlement.tally), emptyTally);
  const failures = settled.reduce((sum, { settlement }) => addFailures(sum, settlement.failures), {});
  const state = ended(undefined, { at: now, tally, failures });
  const perRow = settled.map(({ run, settlement }) => ({
    whole: allAccepted(settlement),
    events: deliveryEvents(run, run.devices, settlement, now),
  }));
  const outbox = perRow.flatMap(({ whole, events }) => (whole ? [] : events));
  const { filter: condition, update } = toEndOfSmall(
    state,
    {
      ...(outbox.length > 0 && { outbox }),
      ...Object.assign({}, ...settled.map((one, at) => settledFields(one, at, now))),
    },
    Object.fromEntries(settled.map((_, at) => [`rows.${at}.devices`, ""])),
  );
  const [first] = settled;
  // Most sends reach one device at the first attempt, and their updates are equal.
  const usual = first && settled.length === 1 && first.run.devices.length === 1 && usualResult(first.settlement);
  const same = usual ? `${usual} ${now.getTime()}` : undefined;
  return {
    ended: { state, events: perRow.flatMap(({ events }) => events), stored: outbox },
    update: { key: { _id, projectId }, condition, update, same },
  };
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
