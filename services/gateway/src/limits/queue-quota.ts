import type { ProjectId } from "@herald/contracts";
import { createByteCache, HeraldError, type Logger } from "@herald/kit";

/** How much of one project may wait to be sent. */
export type QueueLimit = { readonly messages: number; readonly bytes: number };

type Deps = {
  readonly limit: QueueLimit;
  /**
   * How many sends of the project wait. Undefined when dispatch does not answer: then everything queued since the last count still
   * waits. Throws bus-unavailable.
   */
  readonly count: (projectId: ProjectId) => Promise<number | undefined>;
  readonly now: () => Date;
  readonly log: Logger;
};

export type QueueQuota = {
  /** Counts a command that is about to be queued. Throws quota-exceeded when too much of the project waits. */
  readonly admit: (projectId: ProjectId, bytes: number) => Promise<void>;
  /** Takes back an admitted command that was not queued. */
  readonly refund: (projectId: ProjectId, bytes: number) => void;
};

/** A count is a request to the broker, so each covers a tenth of the quota, and there is at most one in this time. */
const countEveryMs = 1_000;
const recountShare = 0.1;
/** A queue recovers within seconds or within hours; a client that retries soon costs little. */
const retryAfterSeconds = 5;

/** Room for the counts of about 30,000 projects; the least recently used are evicted. */
const countsBytes = 4 * 1_048_576;
const countBytes = 128;

type Queue = {
  /** The last count. */
  waiting: number;
  meanBytes: number;
  countedAt: number;
  /** Queued by this gateway since the last count. */
  messages: number;
  bytes: number;
};

/**
 * Keeps one project from filling the queue that all recountShare. Between two counts only what this gateway sends is known, so that with
 * several of them a project may be over its quota by a tenth for each.
 */
export const createQueueQuota = ({ limit, count, now, log }: Deps): QueueQuota => {
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
    waiting + messages > limit.messages || waiting * meanBytes + bytes > limit.bytes;
  const isDue = (queue: Queue): boolean =>
    (queue.messages >= limit.messages * recountShare || queue.bytes >= limit.bytes * recountShare || isOver(queue)) &&
    now().getTime() - queue.countedAt >= countEveryMs;

  const recount = async (projectId: ProjectId, queue: Queue, own: number): Promise<void> => {
    // Requests that arrive meanwhile use the previous count, and are added to the new one.
    queue.countedAt = now().getTime();
    const { waiting, meanBytes, messages, bytes } = queue;
    // A failed count refuses nothing: if the bus is unavailable, the send itself fails.
    const counted = await count(projectId).catch((err: unknown) => {
      log.warn({ err }, "cannot count the waiting sends of a project");
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
        `notifications: at most ${limit.messages} notifications, or ${limit.bytes} bytes, of a project may wait to be sent; come back in ${retryAfterSeconds} s`,
        { retryAfterSeconds },
      );
    },
  };
};
