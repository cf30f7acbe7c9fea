import { runEvery } from "@herald/kit";
import { type RetentionRule, retentionBatch } from "@herald/mongo";
import type { DueMessages, Finisher } from "../delivery/follow-up.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { Proposals } from "../delivery/proposals.ts";
import type { RecoverLostWork } from "../delivery/recover-lost-work.ts";
import type { Deps } from "../deps.ts";
import { capDays } from "../stores/cap-store.ts";
import type { NotificationState } from "../stores/notification-document.ts";

type SweepDeps = Pick<Deps, "deliveries" | "log" | "notifications" | "now"> & {
  readonly pipeline: Pipeline;
  readonly finisher: Finisher;
  readonly recover: RecoverLostWork["recover"];
  readonly dueMessages: DueMessages;
  readonly proposals: Pick<Proposals, "expire">;
  readonly everyMs: number;
};

/** Time for the broker's clock to start a row that is due. A row that is later than this was missed. */
const graceMs = 3_000;
/** The sweep does not repeat a published wake-up within this time. */
const againMs = 30_000;
/** Bounded, because after a loss of the broker's data, every unfinished notification needs a check. */
const checksAtATime = 8;

/** Finds work that the broker's clock or a handler missed, and continues it. */
export const createSweeps = (deps: SweepDeps) => {
  const { deliveries, notifications, pipeline, finisher, recover, dueMessages, proposals, now, log } = deps;

  const sweepRows = async (grace: number, signal?: AbortSignal) => {
    const at = now();
    for (const row of await deliveries.overdue(new Date(at.getTime() - grace))) {
      if (signal?.aborted) return;
      const { _id, projectId, state, dueAt = at } = row;
      if (state === "settled") await pipeline.followUp(row);
      if (state !== "waiting") continue;
      await dueMessages.publish(row, dueAt);
      // `row.dueAt`, because the handler of the wake-up may already have postponed the row for longer.
      await deliveries.postpone(projectId, _id, new Date(at.getTime() + againMs), row.dueAt);
    }
  };

  const check = async (document: NotificationState) => {
    const { _id, projectId, step, expansions, paused } = document;
    if (step === "approval") return proposals.expire(document);
    // Without messages that were lost, it would be held for ever.
    if (step === "scheduled" && expansions?.rollout?.held && !paused) await recover(document);
    if (step === "scheduled") return dueMessages.publish(document, now());
    await finisher.check(projectId, _id);
    await recover(document);
  };

  const sweep = async (signal: AbortSignal) => {
    await sweepRows(graceMs, signal);
    const unchecked = await notifications.takeUnchecked(now());
    const failed: unknown[] = [];
    for (let from = 0; from < unchecked.length && !signal.aborted; from += checksAtATime) {
      const checked = await Promise.allSettled(unchecked.slice(from, from + checksAtATime).map(check));
      // A failed check does not prevent the check of others.
      for (const one of checked) if (one.status === "rejected") failed.push(one.reason);
    }
    if (failed.length > 0) throw failed[0];
  };

  return {
    /** Starts the sweeps; the first runs at once. */
    start: () => runEvery("find what is late", deps.everyMs, log, sweep),
    /** Starts rows that were just made due, without waiting for the next sweep. Never throws. */
    sweepDue: () =>
      sweepRows(0).catch((err: unknown) => log.warn({ err }, "could not start what is due: the next sweep starts it")),
  };
};

export type Sweeps = ReturnType<typeof createSweeps>;

/** Most notifications have few rows, so this many have about one batch of rows. */
const notificationsAtATime = 200;

const capMs = capDays * 86_400_000;

/**
 * Removes notifications together with their deliveries, `keepMs` after the notification's end. Counts are sums over rows, so the rows
 * of a notification that has not ended stay, however old. Rows are removed first: after a crash, the notification is found again.
 */
export const retentionRules = (
  { notifications, deliveries, recipients, caps }: Pick<Deps, "notifications" | "deliveries" | "recipients" | "caps">,
  keepMs: number,
): RetentionRule[] => [
  { name: "caps", keepMs: capMs, removeBatch: caps.removeOld },
  {
    name: "notifications",
    keepMs,
    removeBatch: async (before, after) => {
      const ended = await notifications.endedBefore(before, after, notificationsAtATime);
      if (ended.length === 0) return { removed: 0, more: false };
      const chunks = await recipients.removeBatch(ended);
      if (chunks === retentionBatch) return { removed: chunks, more: true, after };
      const removed = await deliveries.removeBatch(ended);
      if (removed === retentionBatch) return { removed, more: true, after };
      await notifications.removeAll(ended);
      return { removed: removed + ended.length, more: ended.length === notificationsAtATime, after: ended.at(-1)?._id };
    },
  },
];
