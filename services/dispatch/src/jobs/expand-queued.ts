import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Logger, Repeating } from "@herald/kit";
import type { Expand } from "../delivery/expand.ts";
import type { ExpansionQueue } from "../stores/expansion-queue.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { batchByProject, sweepProjects } from "./batch-by-project.ts";

/**
 * Expansions of one project that may be under way at a time. Registry holds each in memory while the project's delivery queues are
 * full: 32 of the largest are 2 MiB of the 64 MiB that it may hold, and 600 such projects fit in its consumer. At some 50 ms from
 * one command to the next they are enough for 600 notifications a second.
 */
const maxRunning = 32;
/** The sweep looks at an expansion that has not ended by then. */
const checkAfterMs = 60_000;
const sweepEveryMs = 30_000;

/**
 * Commands the expansion of a project's queued notifications, oldest first, as many as may be under way. Repeatable. `added`: one that
 * was just put there, which need not be read where there is room for it at once.
 */
export type ExpandQueued = (projectId: ProjectId, added?: NotificationRecord) => Promise<void>;

type Deps = {
  readonly queue: ExpansionQueue;
  readonly notifications: Pick<NotificationStore, "get">;
  readonly expand: Expand;
  readonly now: () => Date;
};

export const createExpandQueued = ({ queue, notifications, expand, now }: Deps): ExpandQueued => {
  const command = async (projectId: ProjectId, id: NotificationId): Promise<void> => {
    const document = await notifications.get(projectId, id);
    if (document && !document.final && !document.expanded) await expand(document);
  };

  const one = async (projectId: ProjectId, asked: readonly (NotificationRecord | undefined)[]): Promise<void> => {
    const room = maxRunning - (await queue.countRunning(projectId, maxRunning));
    if (room <= 0) return;
    const added = asked.flatMap((one) => one ?? []);
    // Others may be in the queue only where all places are taken, or a crash left them there, and then somebody asks for the queue.
    const known = added.length === asked.length && added.length <= room;
    const next = known ? added.map(({ _id }) => _id) : await queue.oldest(projectId, room);
    if (next.length === 0) return;
    // Commanded first: a crash in between commands it again, and registry makes the same batches of a repeat.
    await Promise.all(known ? added.map((document) => expand(document)) : next.map((id) => command(projectId, id)));
    await queue.start(projectId, next, new Date(now().getTime() + checkAfterMs));
  };

  // One round at a time, so that no project is read while its last command is not yet stored. What comes meanwhile shares the next.
  const expandBatched = batchByProject<NotificationRecord | undefined>(one);
  return (projectId, added) => expandBatched(projectId, added);
};

/** Looks now and then at every project that has expansions: the messages that would go on with its queue may be gone. */
export const sweepExpansions = (
  { queue, expandQueued }: { readonly queue: ExpansionQueue; readonly expandQueued: ExpandQueued },
  log: Logger,
): Repeating =>
  sweepProjects("go on with queued expansions", sweepEveryMs, queue.projectAfter, (id) => expandQueued(id), log);
