import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Failures, Tally } from "../domain/counts.ts";
import { isFinished } from "../domain/notification-status.ts";
import type { LedgerReads } from "../stores/ledger-reads.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A root row that was just made final, with nothing that goes on. */
export type LastRow = { readonly tally: Tally; readonly failures: Failures };

export type Finisher = {
  /**
   * Finishes a notification if every device has its final state. Runs after `expanded` was written and after each row was, so
   * whichever comes last finishes it. `only`: the row, which is all there is where registry dealt a single batch.
   */
  check(projectId: ProjectId, id: NotificationId, only?: LastRow): Promise<void>;
};

export const createFinisher = ({
  notifications,
  ledger,
  flush,
  now,
}: {
  notifications: NotificationStore;
  ledger: LedgerReads;
  /** Publishes the outbox of a notification. Never throws. */
  flush: (document: NotificationState) => Promise<void>;
  now: () => Date;
}): Finisher => {
  const sumsOf = async (document: NotificationState, only: LastRow | undefined): Promise<LastRow | undefined> => {
    const { projectId, _id, expanded, expansionLostAt } = document;
    if (!expanded) return undefined;
    // What is left of a lost expansion may be dealt later, when that is replayed.
    if (only && expanded.batches === 1 && !expansionLostAt) return only;
    const state = await ledger.state(projectId, _id);
    return isFinished({ ...state, expandedBatches: expanded.batches }) ? ledger.sums(projectId, _id) : undefined;
  };

  /** It ended without the audience that a lost expansion never dealt, and some of that was dealt since: the counts are of all. */
  const amend = async ({ projectId, _id }: NotificationState): Promise<void> => {
    const { open } = await ledger.state(projectId, _id);
    if (open === 0) await notifications.amend(projectId, _id, await ledger.sums(projectId, _id));
  };

  return {
    check: async (projectId, id, only) => {
      for (;;) {
        const document = await notifications.getState(projectId, id);
        if (!document) return;
        if (document.final) return document.expansionLostAt ? amend(document) : undefined;
        const sums = await sumsOf(document, only);
        if (!sums) return;
        const { tally, failures } = sums;
        // False when it was cancelled meanwhile, or somebody else has finished it: look again.
        if (!(await notifications.finish(document, { tally, failures, now: now() }))) continue;
        await flush(document);
        return;
      }
    },
  };
};
