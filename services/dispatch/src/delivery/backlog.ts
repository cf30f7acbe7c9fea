import { randomUUID } from "node:crypto";
import { type Bus, publish } from "@herald/bus";
import { type DeviceId, DrainBacklogV1, isPersonal, type NotificationId, type ProjectId } from "@herald/contracts";
import { type FairGate, HeraldError, type Logger, type Repeating } from "@herald/kit";
import { batchByProject, sweepProjects } from "../jobs/batch-by-project.ts";
import type { RecoverLostWork } from "../jobs/recover-lost-work.ts";
import type { BacklogStore, QueuedSend } from "../stores/backlog-store.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { SmallSendStore } from "../stores/small-send-store.ts";
import type { CheckWaiting } from "./prepare.ts";
import { isUnavailable } from "./retry-while-unavailable.ts";
import type { SmallSend } from "./small-send.ts";

type BacklogDeps = {
  readonly bus: Bus;
  readonly store: BacklogStore;
  readonly sends: Pick<SmallSendStore, "findWithEvents">;
  readonly smallSend: SmallSend;
  readonly checkWaiting: CheckWaiting;
  /** Has what was begun of a send be sent again by messages of its own. */
  readonly release: RecoverLostWork["release"];
  /** The one that sends which do not wait pass, too. */
  readonly gate: FairGate;
  readonly now: () => Date;
  readonly log: Logger;
};

/** What waits beyond a project's share of the small path. */
export type Backlog = {
  /** Whether new sends of a project go behind those that wait: as far as this process knows it has some. */
  isOpen(projectId: ProjectId): boolean;
  /** A send of the project finds its line full. */
  overflow(projectId: ProjectId): void;
  /** Resolves when the project has a drain message. Those of the same moment share the effort. */
  ensureDrain(projectId: ProjectId): Promise<void>;
  /** Sends what waits of a project, oldest first, until nothing does. Rejects when something is unavailable; the rest is found again. */
  drain(projectId: ProjectId, claim: Claim, signal: AbortSignal): Promise<void>;
};

/** Sends that are read, checked and claimed together: an eighth of the gate's places at most. */
const sliceSize = 64;
/** After an overflow new sends go behind the others for so long; the process that drains them knows better. */
const overflowMs = 1_000;
/** Longer than any step of a drain, so that a project is not open for ever where it ended without a word. */
const drainMs = 10_000;
/** What waits no longer still goes to the devices that its targets named. */
const freshMs = 2_000;
const noDevices: ReadonlySet<DeviceId> = new Set();

export const createBacklog = (deps: BacklogDeps): Backlog => {
  const { bus, store, sends, smallSend, checkWaiting, release, gate, now, log } = deps;
  /** Until when a project's new sends go behind the others, in milliseconds of `performance.now()`. */
  const open = new Map<ProjectId, number>();

  const ensureDrain = batchByProject<void>((projectId) =>
    publish(bus, DrainBacklogV1, { projectId }, { id: randomUUID() }).catch((error: unknown) => {
      // It is there already.
      if (!(error instanceof HeraldError && error.code === "queue-full")) throw error;
    }),
  );

  /** The devices of each send of a slice that it is not for any more. */
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

  /** Sends a slice. Those that fail for a reason of their own leave the backlog, and are tried again by themselves. */
  const deliverSlice = async (
    projectId: ProjectId,
    slice: readonly QueuedSend[],
    claim: Claim,
    signal: AbortSignal,
  ) => {
    const moved = await movedOf(projectId, slice);
    const fresh = slice.filter(({ runs }) => runs.length > 0).map(({ document }) => document._id);
    const claimed = fresh.length > 0 ? await store.claim(projectId, fresh, claim, now()) : new Set();
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
    if (ended.length > 0) await store.remove(projectId, ended);
    if (unavailable.length > 0) throw unavailable[0];
  };

  /** Reads all of a backlog once, and sends it. Resolves to how many there were. */
  const drainOnce = async (projectId: ProjectId, claim: Claim, signal: AbortSignal): Promise<number> => {
    const running = new Set<Promise<void>>();
    const failed: unknown[] = [];
    let found = 0;
    let after = "";
    /** Resolves to whether there may be more. */
    const next = async (): Promise<boolean> => {
      const { places, leave } = await gate.enterUpTo(projectId, sliceSize);
      const begin = async (slice: readonly QueuedSend[]) => {
        await deliverSlice(projectId, slice, claim, signal)
          .catch((error: unknown) => failed.push(error))
          .finally(leave);
      };
      try {
        open.set(projectId, performance.now() + drainMs);
        const slice = await store.read(projectId, after, places, now());
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
    isOpen: (projectId) => {
      const until = open.get(projectId);
      if (until === undefined) return false;
      if (performance.now() < until) return true;
      open.delete(projectId);
      return false;
    },
    overflow: (projectId) => {
      open.set(projectId, Math.max(open.get(projectId) ?? 0, performance.now() + overflowMs));
    },
    ensureDrain: (projectId) => ensureDrain(projectId),
    drain: async (projectId, claim, signal) => {
      try {
        for (;;) {
          if ((await drainOnce(projectId, claim, signal)) > 0) continue;
          // What was put behind the others while they were read has seen this, or is seen by the last look.
          open.delete(projectId);
          if ((await drainOnce(projectId, claim, signal)) === 0) return;
        }
      } finally {
        open.delete(projectId);
      }
    },
  };
};

const sweepEveryMs = 2_000;

/** Looks now and then at every project that has a backlog: the message that drains it may be gone. */
export const sweepBacklogs = (
  { store, backlog }: { readonly store: Pick<BacklogStore, "projectAfter">; readonly backlog: Backlog },
  log: Logger,
): Repeating => sweepProjects("go on with backlogs", sweepEveryMs, store.projectAfter, backlog.ensureDrain, log);
