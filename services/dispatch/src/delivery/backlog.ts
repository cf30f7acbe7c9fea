import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { publish, suspectFromDelivery } from "@herald/bus";
import { DrainBacklogV1, type GroupedSend, type ProjectId, type StatusReport } from "@herald/contracts";
import { hasCode, isUnavailable, type PeriodicTask } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { pauseOf } from "../project-rules.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { maxParked, type SendGroup } from "../stores/send-group-store.ts";
import type { BegunSends, FailedSend } from "./begun-sends.ts";
import { type createDeliverWithPlaces, throwAny } from "./deliver-sends.ts";
import { batchByProject, sweepProjects } from "./expand.ts";

type BacklogDeps = Pick<Deps, "bus" | "log" | "rules" | "sendGroups"> & {
  readonly begun: BegunSends;
  /** At the gate of all small sends, whether or not they waited in a backlog. */
  readonly deliverWithPlaces: ReturnType<typeof createDeliverWithPlaces>;
  /** How many sends the gate admits at a time. */
  readonly places: number;
};

/** Groups that are read at a time. */
const groupsAtATime = 8;
/** After an overflow, a project's new sends go to its backlog for this long. The process that drains it knows its state better. */
const overflowMs = 1_000;
/** Longer than any step of a drain, so that a project's backlog does not stay open if the drain ends unnoticed. */
const drainMs = 10_000;

/** While sends that it began wait for their providers, a drain looks this often for groups that were stored since. */
const lookAgainMs = 1_000;

/** Small sends beyond their project's share, which wait in groups as the gateway accepted them. */
export const createBacklog = (deps: BacklogDeps) => {
  const { bus, sendGroups, begun, deliverWithPlaces, places, rules, log } = deps;
  const isPaused = (projectId: ProjectId) => pauseOf(rules, projectId) !== undefined;
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

  /**
   * Removes a group when all of its sends have ended. Those that failed, although all dependencies are available, continue apart. Rejects
   * when one must be retried.
   */
  const end = async (group: SendGroup, ended: Promise<FailedSend[]>, signal: AbortSignal): Promise<void> => {
    const failed = await ended;
    const isLater = ({ error }: FailedSend) => signal.aborted || isUnavailable(error);
    const apart = failed.filter((one) => !isLater(one));
    for (const { send, error: err } of apart) {
      const { projectId, notificationId } = send;
      log.error({ err, projectId, notificationId }, "a send of a backlog failed");
    }
    const sends = apart.map(({ send }) => send);
    throwAny([...(await begun.continueApart(sends, group.claim)), ...failed.filter(isLater)]);
    await sendGroups.remove(group);
  };

  /**
   * Reads a whole backlog once and sends it. Resolves to the number of groups. `suspects`: processes may have died over so many of its first
   * sends, so they continue apart.
   */
  const drainOnce = async (projectId: ProjectId, signal: AbortSignal, suspects: number): Promise<number> => {
    const running = new Set<Promise<void>>();
    const failed: unknown[] = [];
    let found = 0;
    let after = "";
    let left = suspects;
    const endLater = (group: SendGroup, ended: Promise<FailedSend[]>) => {
      const run: Promise<void> = end(group, ended, signal)
        .catch((error: unknown) => void failed.push(error))
        .finally(() => running.delete(run));
      running.add(run);
    };
    /** Begins the next groups. Resolves to whether there may be more. */
    const next = async (): Promise<boolean> => {
      const groups = await sendGroups.read(projectId, after, groupsAtATime);
      found += groups.length;
      after = groups.at(-1)?._id ?? after;
      for (const group of groups) {
        if (failed.length > 0 || signal.aborted || isPaused(projectId)) return false;
        if (left > 0) {
          left -= group.sends.length;
          endLater(group, begun.continueApart(group.sends, group.claim));
          // So that they have left the backlog before anything else is sent.
          if (left <= 0) await Promise.all(running);
          continue;
        }
        // An earlier holder of the drain message may have begun it.
        const message = { claim: group.claim, signal, again: true };
        const onBegin = () => keepOpen(projectId, drainMs);
        const placed = deliverWithPlaces(group.sends, message, { onBegin });
        endLater(group, placed.ended);
        await placed.begun;
      }
      return groups.length === groupsAtATime;
    };
    try {
      while (failed.length === 0 && !signal.aborted && !isPaused(projectId)) {
        if (await next()) continue;
        if (running.size === 0) break;
        // A phone may take a minute: what is stored meanwhile does not wait for it.
        await Promise.race([Promise.all(running), setTimeout(lookAgainMs, undefined, { ref: false })]);
      }
    } catch (error) {
      failed.push(error);
    }
    await Promise.all(running);
    if (failed.length > 0) throw failed[0];
    return found;
  };

  return {
    /** The projects that may have a backlog. */
    open: open as ReadonlyMap<ProjectId, number>,
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
      if (!isPaused(projectId)) await ensureDrain(projectId);
    },
    /** Resolves when the project has a drain message, unless it is paused. Concurrent calls share one attempt. */
    ensureDrain: async (projectId: ProjectId): Promise<void> => {
      if (!isPaused(projectId)) await ensureDrain(projectId);
    },
    /**
     * Sends a project's backlog, oldest first, until it is empty, or the project is paused. Rejects when a dependency is unavailable: a
     * redelivery sends the rest.
     */
    drain: async (
      projectId: ProjectId,
      { signal, deliveryCount }: { readonly signal: AbortSignal; readonly deliveryCount: number },
    ): Promise<void> => {
      try {
        if (rules.loading) await rules.loading;
        // An earlier holder of the message may have begun as many sends as there are places.
        for (let suspects = deliveryCount >= suspectFromDelivery ? places : 0; !isPaused(projectId); suspects = 0) {
          if ((await drainOnce(projectId, signal, suspects)) > 0) continue;
          // Read once more after closing: a send that was still stored in the backlog is found by this last read.
          open.delete(projectId);
          if ((await drainOnce(projectId, signal, 0)) === 0) return;
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
