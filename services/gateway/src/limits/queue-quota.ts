import type { ProjectId } from "@herald/contracts";
import { createByteCache, HeraldError, type Logger } from "@herald/kit";

/** What one project may have waiting in the queue of commands. */
export type QueueLimit = { readonly messages: number; readonly bytes: number };

type Deps = {
  readonly most: QueueLimit;
  /**
   * How many sends of the project wait. Undefined: whoever takes them cannot be asked, so what is queued meanwhile is waiting, too.
   * Throws bus-unavailable.
   */
  readonly count: (projectId: ProjectId) => Promise<number | undefined>;
  readonly now: () => Date;
  readonly log: Logger;
};

export type QueueQuota = {
  /** Takes note of a command that is about to be queued. Throws quota-exceeded where the project has too much waiting. */
  readonly admit: (projectId: ProjectId, bytes: number) => Promise<void>;
  /** A command that was admitted is not queued. */
  readonly refund: (projectId: ProjectId, bytes: number) => void;
};

/** Counting asks the broker, so it is done each time that a tenth of the quota was sent, and no more often than this. */
const countEveryMs = 1_000;
const share = 0.1;
/** A queue moves, or what holds it up is mended, within seconds or within hours: asking again soon costs little. */
const retryAfterSeconds = 5;

/** Counts of some ten thousand projects, those that sent last. */
const countsBytes = 4 * 1_048_576;
const countBytes = 128;

type Queue = {
  /** By the last count. */
  waiting: number;
  meanBytes: number;
  countedAt: number;
  /** What this gateway has queued since. */
  messages: number;
  bytes: number;
};

/**
 * Keeps one project from filling the queue that all share. Between two counts only what this gateway sends is known, so that with
 * several of them a project may be over its quota by a tenth for each.
 */
export const createQueueQuota = ({ most, count, now, log }: Deps): QueueQuota => {
  const queues = createByteCache<ProjectId, Queue>({
    name: "queue-quotas",
    maxBytes: countsBytes,
    sizeOf: () => countBytes,
  });
  const queueOf = (projectId: ProjectId): Queue => {
    const known = queues.get(projectId);
    if (known) return known;
    const empty = { waiting: 0, meanBytes: 0, countedAt: 0, messages: 0, bytes: 0 };
    queues.set(projectId, empty);
    return empty;
  };

  const isOver = ({ waiting, meanBytes, messages, bytes }: Queue): boolean =>
    waiting + messages > most.messages || waiting * meanBytes + bytes > most.bytes;
  const isDue = (queue: Queue): boolean =>
    (queue.messages >= most.messages * share || queue.bytes >= most.bytes * share || isOver(queue)) &&
    now().getTime() - queue.countedAt >= countEveryMs;

  const recount = async (projectId: ProjectId, queue: Queue, own: number): Promise<void> => {
    // Those who come meanwhile go by what was known before, and are added to what is found.
    queue.countedAt = now().getTime();
    const { waiting, meanBytes, messages, bytes } = queue;
    // Nobody is refused because of what is not known: while the bus is unavailable the send itself says so.
    const counted = await count(projectId).catch((err: unknown) => {
      log.warn({ err }, "what waits in the queue cannot be counted");
      return 0;
    });
    if (counted === undefined) return;
    queue.waiting = counted;
    queue.meanBytes = (waiting * meanBytes + bytes) / (waiting + messages);
    queue.messages -= messages - 1;
    queue.bytes -= bytes - own;
  };

  return {
    refund: (projectId, bytes) => {
      const queue = queueOf(projectId);
      queue.messages = Math.max(0, queue.messages - 1);
      queue.bytes = Math.max(0, queue.bytes - bytes);
    },
    admit: async (projectId, bytes) => {
      const queue = queueOf(projectId);
      queue.messages++;
      queue.bytes += bytes;
      if (isDue(queue)) await recount(projectId, queue, bytes);
      if (!isOver(queue)) return;
      queue.messages--;
      queue.bytes -= bytes;
      throw new HeraldError(
        "quota-exceeded",
        `notifications: as many of this project as may be are waiting to be sent, ${most.messages} or ${most.bytes} bytes of them; come back in ${retryAfterSeconds} s`,
        { retryAfterSeconds },
      );
    },
  };
};
