import { randomUUID } from "node:crypto";
import { fromOrigin, publish } from "@herald/bus";
import { DrainBacklogV1, type GroupedSend, type ProjectId, type StatusReport } from "@herald/contracts";
import { type FairGate, hasCode, isUnavailable, type PeriodicTask } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { maxParked, type SendGroup } from "../stores/send-group-store.ts";
import type { createSendAsLarge, DeliverSend } from "./deliver-sends.ts";
import { batchByProject, sweepProjects } from "./expand.ts";
import type { RecoverLostWork } from "./recover-lost-work.ts";

type BacklogDeps = Pick<Deps, "bus" | "log" | "notifications" | "sendGroups"> & {
  readonly deliverSend: DeliverSend;
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
  readonly release: RecoverLostWork["release"];
  /** The gate of all small sends, whether or not they waited in a backlog. */
  readonly gate: FairGate;
};

/** Groups that are read at a time. */
const groupsAtATime = 8;
/** After an overflow, a project's new sends go to its backlog for this long. The process that drains it knows its state better. */
const overflowMs = 1_000;
/** Longer than any step of a drain, so that a project's backlog does not stay open if the drain ends unnoticed. */
const drainMs = 10_000;

/** Small sends beyond their project's share, which wait in groups as the gateway accepted them. */
export const createBacklog = (deps: BacklogDeps) => {
  const { bus, sendGroups, notifications, deliverSend, sendAsLarge, release, gate, log } = deps;
  /** Until when a project's new sends go to its backlog, in milliseconds of `performance.now()`. */
  const open = new Map<ProjectId, number>();
  const keepOpen = (projectId: ProjectId, ms: number) =>
    open.set(projectId, Math.max(open.get(projectId) ?? 0, performance.now() + ms));

  const ensureDrain = batchByProject<void>((projectId) =>
    publish(bus, DrainBacklogV1, { projectId }, { id: randomUUID() }).catch((error: unknown) => {
      // The project already has a drain message.
      if (!hasCode(error, "queue-full")) throw error;
    }),
  );

  /** A send that failed, although all dependencies are available, continues with messages of its own. */
  const sendApart = async (send: GroupedSend, err: unknown): Promise<void> => {
    const { projectId, notificationId } = send;
    log.error({ err, projectId, notificationId }, "a send of a backlog failed");
    const begun = (await notifications.getState(projectId, notificationId)) !== null;
    await (begun ? release(projectId, notificationId) : sendAsLarge(send));
  };

  const one = (send: GroupedSend, claim: Claim, signal: AbortSignal): Promise<void> =>
    fromOrigin("deliver send", send.origin, () =>
      // An earlier holder of the drain message may have begun it.
      deliverSend(send, { claim, signal, again: true }).catch(async (error: unknown) => {
        if (signal.aborted || isUnavailable(error)) throw error;
        await sendApart(send, error);
      }),
    );

  /** Begins to send a group as its project's places allow. Resolves when all of it has begun. `results` has an entry for each send. */
  const begin = async ({ projectId, sends, claim }: SendGroup, results: Promise<void>[], signal: AbortSignal) => {
    for (let from = 0; from < sends.length; ) {
      const { places, leave } = await gate.enterUpTo(projectId, sends.length - from);
      keepOpen(projectId, drainMs);
      const part = sends.slice(from, from + places).map((send) => one(send, claim, signal));
      results.push(...part);
      void Promise.allSettled(part).then(leave);
      from += places;
    }
  };

  /** Removes a group when all of its sends have ended. Rejects when one must be retried. */
  const end = async (group: SendGroup, results: readonly Promise<void>[]): Promise<void> => {
    const ended = await Promise.allSettled(results);
    for (const one of ended) if (one.status === "rejected") throw one.reason;
    if (ended.length === group.sends.length) await sendGroups.remove(group);
  };

  /** Reads a whole backlog once and sends it. Resolves to the number of groups. */
  const drainOnce = async (projectId: ProjectId, signal: AbortSignal): Promise<number> => {
    const running = new Set<Promise<void>>();
    const failed: unknown[] = [];
    let found = 0;
    let after = "";
    /** Begins the next groups. Resolves to whether there may be more. */
    const next = async (): Promise<boolean> => {
      const groups = await sendGroups.read(projectId, after, groupsAtATime);
      found += groups.length;
      after = groups.at(-1)?._id ?? after;
      for (const group of groups) {
        if (failed.length > 0 || signal.aborted) return false;
        const results: Promise<void>[] = [];
        try {
          await begin(group, results, signal);
        } finally {
          const run: Promise<void> = end(group, results)
            .catch((error: unknown) => void failed.push(error))
            .finally(() => running.delete(run));
          running.add(run);
        }
      }
      return groups.length === groupsAtATime;
    };
    try {
      while (failed.length === 0 && !signal.aborted && (await next()));
    } catch (error) {
      failed.push(error);
    }
    await Promise.all(running);
    if (failed.length > 0) throw failed[0];
    return found;
  };

  return {
    /** Whether a project's new sends must go to its backlog, because that is not empty as far as this process knows. */
    isOpen: (projectId: ProjectId): boolean => {
      const until = open.get(projectId);
      if (until === undefined) return false;
      if (performance.now() < until) return true;
      open.delete(projectId);
      return false;
    },
    /** Stores sends of one message for their project's turn, and ensures that the project has a drain message. */
    park: async (projectId: ProjectId, sends: readonly GroupedSend[], claim: Claim): Promise<void> => {
      keepOpen(projectId, overflowMs);
      for (let from = 0; from < sends.length; from += maxParked)
        await sendGroups.park(projectId, sends.slice(from, from + maxParked), claim);
      await ensureDrain(projectId);
    },
    /** Resolves when the project has a drain message. Concurrent calls share one attempt. */
    ensureDrain: (projectId: ProjectId): Promise<void> => ensureDrain(projectId),
    /** Sends a project's backlog, oldest first, until it is empty. Rejects when a dependency is unavailable: a redelivery sends the rest. */
    drain: async (projectId: ProjectId, signal: AbortSignal): Promise<void> => {
      try {
        for (;;) {
          if ((await drainOnce(projectId, signal)) > 0) continue;
          // Read once more after closing: a send that was still stored in the backlog is found by this last read.
          open.delete(projectId);
          if ((await drainOnce(projectId, signal)) === 0) return;
        }
      } finally {
        open.delete(projectId);
      }
    },
  };
};

export type Backlog = ReturnType<typeof createBacklog>;

/** The maximum of projects that are shown. */
const maxShown = 100;

/** Lists the projects whose sends wait, for the status that people see, and measures them. */
export const listBacklogs =
  ({ sendGroups, metrics, now }: Pick<Deps, "sendGroups" | "metrics" | "now">) =>
  async (): Promise<Required<Pick<StatusReport, "backlogs">>> => {
    const found = await sendGroups.backlogs(maxShown);
    const oldest = found[0]?.since.getTime() ?? now().getTime();
    metrics.backlogs(
      found.reduce((sum, { sends }) => sum + sends, 0),
      Math.max(0, now().getTime() - oldest) / 1_000,
    );
    return {
      backlogs: found.map(({ projectId, sends, since }) => ({
        project_id: projectId,
        sends,
        since: since.toISOString(),
      })),
    };
  };

const sweepEveryMs = 2_000;

type SweepBacklogsDeps = Pick<Deps, "log" | "sendGroups"> & { readonly backlog: Backlog };

/** Ensures at intervals that every project with a backlog has a drain message, because that may be lost. */
export const sweepBacklogs = ({ sendGroups, backlog, log }: SweepBacklogsDeps): PeriodicTask =>
  sweepProjects("continue backlogs", sweepEveryMs, sendGroups.projectAfter, backlog.ensureDrain, log);
