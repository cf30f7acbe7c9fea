import { type Logger, type Repeating, repeat } from "@herald/kit";
import type { DueMessages } from "../delivery/due-messages.ts";
import type { Finisher } from "../delivery/finish.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { LedgerReads } from "../stores/ledger-reads.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import type { RecoverLostWork } from "./recover-lost-work.ts";

export type Sweeps = {
  /** Begins the rounds, with one at once. */
  start(): Repeating;
  /** Looks for rows that are due, at once: they were just made so. Never throws. */
  sweepDue(): Promise<void>;
};

type Deps = {
  readonly deliveries: DeliveryStore;
  readonly notifications: NotificationStore;
  readonly ledger: LedgerReads;
  readonly pipeline: Pick<Pipeline, "followUp">;
  readonly finisher: Finisher;
  readonly recover: RecoverLostWork["recover"];
  readonly dueMessages: Pick<DueMessages, "publishBatch" | "publishNotification">;
  readonly everyMs: number;
  readonly now: () => Date;
  readonly log: Logger;
};

/** The clock on the bus comes first; what is later than this was forgotten by it. */
const graceMs = 3_000;
/** A wake-up that was published is not published again before. */
const againMs = 30_000;
/** After the broker has lost its data, all that is unfinished waits to be looked at. */
const checksAtATime = 8;
/** After a lost expansion, batches that were partitioned before it may still be in the queue. */
const lostExpansionMs = 60_000;

/** The safety net under the clock and the handlers: finds what is late and hands it to the code that missed it. */
export const createSweeps = (deps: Deps): Sweeps => {
  const { deliveries, notifications, ledger, pipeline, finisher, recover, dueMessages, now, log } = deps;

  const sweepRows = async (grace: number, signal?: AbortSignal) => {
    const at = now();
    for (const row of await deliveries.overdue(new Date(at.getTime() - grace))) {
      if (signal?.aborted) return;
      const { _id, projectId, state, dueAt = at } = row;
      if (state === "settled") await pipeline.followUp(row);
      if (state !== "waiting") continue;
      await dueMessages.publishBatch(row, dueAt);
      // The handler of its message may already have deferred it for longer.
      await deliveries.postpone(projectId, _id, new Date(at.getTime() + againMs), row.dueAt);
    }
  };

  const check = async (document: NotificationState) => {
    const { _id, projectId, dueAt, expanded, expansionLostAt } = document;
    if (dueAt) return dueMessages.publishNotification(document, now());
    if (expansionLostAt && !expanded && now().getTime() - expansionLostAt.getTime() > lostExpansionMs) {
      const { finalRoots, open } = await ledger.state(projectId, _id);
      if (open > 0) return;
      const { tally } = await ledger.sums(projectId, _id);
      await notifications.expanded(
        projectId,
        _id,
        { batches: finalRoots, devices: tally.devices, unmatched: [] },
        now(),
      );
    }
    await finisher.check(projectId, _id);
    await recover(document);
  };

  const sweep = async (signal: AbortSignal) => {
    await sweepRows(graceMs, signal);
    const unchecked = await notifications.takeUnchecked(now());
    const failed: unknown[] = [];
    for (let from = 0; from < unchecked.length && !signal.aborted; from += checksAtATime) {
      const checked = await Promise.allSettled(unchecked.slice(from, from + checksAtATime).map(check));
      // What one fails with keeps no other from being looked at.
      for (const one of checked) if (one.status === "rejected") failed.push(one.reason);
    }
    if (failed.length > 0) throw failed[0];
  };

  return {
    start: () => repeat("find what is late", deps.everyMs, log, sweep),
    sweepDue: () =>
      sweepRows(0).catch((err: unknown) => log.warn({ err }, "could not start what is due: the next sweep starts it")),
  };
};
