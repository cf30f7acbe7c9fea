import { randomUUID } from "node:crypto";
import { publish } from "@herald/bus";
import { DrainBacklogV1, isPersonal, type NotificationId, type ProjectId } from "@herald/contracts";
import { type FairGate, hasCode, isUnavailable, type Repeating } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { QueuedSend } from "../stores/queue-stores.ts";
import { batchByProject, sweepProjects } from "./expand.ts";
import { type CheckWaiting, noDevices } from "./prepare.ts";
import type { RecoverLostWork } from "./recover-lost-work.ts";
import type { SmallSend } from "./small-send.ts";

type BacklogDeps = Deps & {
  readonly smallSend: SmallSend;
  readonly checkWaiting: CheckWaiting;
  readonly release: RecoverLostWork["release"];
  /** The gate of all small sends, whether or not they waited in a backlog. */
  readonly gate: FairGate;
};

/** Sends that are read, checked and claimed together: at most an eighth of the gate's places. */
const sliceSize = 64;
/** After an overflow, a project's new sends go to its backlog for this long. The process that drains it knows its state better. */
const overflowMs = 1_000;
/** Longer than any step of a drain, so that a project's backlog does not stay open if the drain ends unnoticed. */
const drainMs = 10_000;
/** For a send that waited less, dispatch does not ask registry again whether its devices have moved. */
const freshMs = 2_000;

export const createBacklog = (deps: BacklogDeps) => {
  const { bus, queued, sends, smallSend, checkWaiting, release, gate, now, log } = deps;
  /** Until when a project's new sends go to its backlog, in milliseconds of `performance.now()`. */
  const open = new Map<ProjectId, number>();

  const ensureDrain = batchByProject<void>((projectId) =>
    publish(bus, DrainBacklogV1, { projectId }, { id: randomUUID() }).catch((error: unknown) => {
      // The project already has a drain message.
      if (!hasCode(error, "queue-full")) throw error;
    }),
  );

  /** For each send of a slice, the devices that must not get it any more. */
  const movedOf = (projectId: ProjectId, slice: readonly QueuedSend[]) => {
    const at = now().getTime();
    return Promise.all(
      slice.map(async ({ document: { acceptedAt, content }, runs }) =>
        runs.length === 0 || at - acceptedAt.getTime() < freshMs
          ? noDevices
          : checkWaiting(
              projectId,
              runs.flatMap(({ devices }) => devices),
              isPersonal(content.targets),
            ),
      ),
    );
  };

  const resume = async (projectId: ProjectId, id: NotificationId, claim: Claim, signal: AbortSignal) => {
    const found = await sends.findWithEvents(projectId, id);
    if (found) await smallSend.resume(found.document, found.events, found.document.sending ?? claim, signal);
  };

  /** Sends a slice. A send that fails, although all dependencies are available, leaves the backlog and is retried separately. */
  const deliverSlice = async (
    projectId: ProjectId,
    slice: readonly QueuedSend[],
    claim: Claim,
    signal: AbortSignal,
  ) => {
    const moved = await movedOf(projectId, slice);
    const fresh = slice.filter(({ runs }) => runs.length > 0).map(({ document }) => document._id);
    const claimed = fresh.length > 0 ? await queued.claim(projectId, fresh, claim, now()) : new Set();
    const done = await Promise.allSettled(
      slice.map(async ({ document, runs }, at) => {
        const id = document._id;
        if (runs.length === 0) return resume(projectId, id, claim, signal);
        if (claimed.has(id)) await smallSend.push({ document, runs }, signal, moved[at]);
      }),
    );
    const ended: NotificationId[] = [];
    const unavailable: unknown[] = [];
    for (const [at, result] of done.entries()) {
      const id = slice[at]?.document._id as NotificationId;
      if (result.status === "fulfilled") ended.push(id);
      else if (signal.aborted || isUnavailable(result.reason)) unavailable.push(result.reason);
      else {
        log.error({ err: result.reason, projectId, notificationId: id }, "a send of a backlog failed");
        await release(projectId, id);
        ended.push(id);
      }
    }
    if (ended.length > 0) await queued.remove(projectId, ended);
    if (unavailable.length > 0) throw unavailable[0];
  };

  /** Reads a whole backlog once and sends it. Resolves to the number of sends. */
  const drainOnce = async (projectId: ProjectId, claim: Claim, signal: AbortSignal): Promise<number> => {
    const running = new Set<Promise<void>>();
    const failed: unknown[] = [];
    let found = 0;
    let after = "";
    /** Sends the next slice. Resolves to whether there may be more. */
    const next = async (): Promise<boolean> => {
      const { places, leave } = await gate.enterUpTo(projectId, sliceSize);
      const begin = async (slice: readonly QueuedSend[]) => {
        await deliverSlice(projectId, slice, claim, signal)
          .catch((error: unknown) => failed.push(error))
          .finally(leave);
      };
      try {
        open.set(projectId, performance.now() + drainMs);
        const slice = await queued.read(projectId, after, places, now());
        found += slice.length;
        after = slice.at(-1)?.document._id ?? after;
        const run = begin(slice).finally(() => running.delete(run));
        running.add(run);
        return slice.length === places;
      } catch (error) {
        leave();
        throw error;
      }
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
    /** Records that a send found no free place in memory for its project. */
    overflow: (projectId: ProjectId) => {
      open.set(projectId, Math.max(open.get(projectId) ?? 0, performance.now() + overflowMs));
    },
    /** Resolves when the project has a drain message. Concurrent calls share one attempt. */
    ensureDrain: (projectId: ProjectId): Promise<void> => ensureDrain(projectId),
    /** Sends a project's backlog, oldest first, until it is empty. Rejects when a dependency is unavailable: a redelivery sends the rest. */
    drain: async (projectId: ProjectId, claim: Claim, signal: AbortSignal): Promise<void> => {
      try {
        for (;;) {
          if ((await drainOnce(projectId, claim, signal)) > 0) continue;
          // Read once more after closing: a send that was still stored in the backlog is found by this last read.
          open.delete(projectId);
          if ((await drainOnce(projectId, claim, signal)) === 0) return;
        }
      } finally {
        open.delete(projectId);
      }
    },
  };
};

export type Backlog = ReturnType<typeof createBacklog>;

const sweepEveryMs = 2_000;

/** Ensures at intervals that every project with a backlog has a drain message, because that may be lost. */
export const sweepBacklogs = ({ queued, backlog, log }: Deps & { readonly backlog: Backlog }): Repeating =>
  sweepProjects("continue backlogs", sweepEveryMs, queued.projectAfter, backlog.ensureDrain, log);
