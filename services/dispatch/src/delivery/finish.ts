import type { NotificationId, ProjectId } from "@herald/contracts";
import { type Failures, noDevices, type Tally } from "../domain/counts.ts";
import { isFinished } from "../domain/notification-status.ts";
import type { LedgerReads } from "../stores/ledger-reads.ts";
import type { NotificationState, OutboxCarrier } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A root row that was just made final, with nothing that goes on. */
export type FinalRow = { readonly tally: Tally; readonly failures: Failures };

export type Finisher = {
  /**
   * Finishes a notification if every device has its final state. Runs after `expanded` was written and after each row was, so
   * whichever comes last finishes it. `only`: the row, which is all there is where registry partitioned a single batch.
   */
  check(projectId: ProjectId, id: NotificationId, only?: FinalRow): Promise<void>;
  /** The same for one of a single batch, after `expanded` was written: it need not be read where that batch is still to be sent. */
  checkSingleBatch(projectId: ProjectId, id: NotificationId): Promise<void>;
};

export const createFinisher = ({
  notifications,
  ledger,
  publishOutbox,
  now,
}: {
  notifications: NotificationStore;
  ledger: LedgerReads;
  /** Publishes the events of a notification that has ended. Never throws. */
  publishOutbox: (written: OutboxCarrier) => Promise<void>;
  now: () => Date;
}): Finisher => {
  const sumsOf = async (document: NotificationState, only: FinalRow | undefined): Promise<FinalRow | undefined> => {
    const { projectId, _id, expanded, expansionLostAt } = document;
    if (!expanded) return undefined;
    // What is left of a lost expansion may be partitioned later, when that is replayed.
    if (expanded.batches === 0 && !expansionLostAt) return { tally: noDevices, failures: {} };
    if (only && expanded.batches === 1 && !expansionLostAt) return only;
    const state = await ledger.state(projectId, _id);
    return isFinished({ ...state, expandedBatches: expanded.batches }) ? ledger.sums(projectId, _id) : undefined;
  };

  /** It ended without the audience that a lost expansion never partitioned, and some of that was partitioned since: the counts are of all. */
  const amend = async ({ projectId, _id }: NotificationState): Promise<void> => {
    const { open } = await ledger.state(projectId, _id);
    if (open === 0) await notifications.amend(projectId, _id, await ledger.sums(projectId, _id));
  };

  const check: Finisher["check"] = async (projectId, id, only) => {
    const ended = only && (await notifications.finishSingleBatch(projectId, id, { ...only, now: now() }));
    if (ended) return publishOutbox(ended);
    for (;;) {
      const document = await notifications.getState(projectId, id);
      if (!document) return;
      if (document.final) return document.expansionLostAt ? amend(document) : undefined;
      const sums = await sumsOf(document, only);
      if (!sums) return;
      const { tally, failures } = sums;
      const written = await notifications.finish(document, { tally, failures, now: now() });
      if (written) return publishOutbox(written);
      // It was cancelled meanwhile, or somebody else has finished it: look again.
    }
  };

  return {
    check,
    checkSingleBatch: async (projectId, id) => {
      const row = await ledger.singleRow(projectId, id);
      // The handler that settles that batch checks for the end, and sees by then that it was the last.
      if (row === "open") return;
      await check(projectId, id, row === "several" ? undefined : row);
    },
  };
};
