import { type Bus, countMessages, sendRequest } from "@herald/bus";
import { backlogRequests, type ProjectId } from "@herald/contracts";
import { createByteCache, HeraldError, hasCode, type Logger } from "@herald/kit";

/** How many messages and bytes of one project may wait to be sent. */
export type QueueLimit = { readonly messages: number; readonly bytes: number };

type Deps = {
  readonly limitOf: (projectId: ProjectId) => QueueLimit;
  /**
   * Counts the project's waiting sends. Undefined when dispatch does not answer: then all sends queued since the last count still wait.
   * Throws bus-unavailable.
   */
  readonly count: (projectId: ProjectId) => Promise<number | undefined>;
  /** The error of a project beyond its quota; absent: of waiting sends. */
  readonly refusal?: (limit: QueueLimit) => HeraldError;
  readonly now: () => Date;
  readonly log: Logger;
};

/** A count is a request to the broker, so there is at most one per second, and one per tenth of the quota. */
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
  /** A count is under way: another would subtract the same sends again. */
  counting?: boolean;
};

export type QueueQuota = ReturnType<typeof createQueueQuota>;

const tooManyWaiting = (limit: QueueLimit): HeraldError =>
  new HeraldError(
    "quota-exceeded",
    `notifications: at most ${limit.messages} notifications, or ${limit.bytes} bytes, of a project may wait to be sent; retry in ${retryAfterSeconds} s`,
    { retryAfterSeconds },
  );

/**
 * Keeps one project from filling the queue that all projects share. Between two counts a gateway knows only its own sends, so a project may
 * exceed its quota by a tenth per gateway.
 */
export const createQueueQuota = ({ limitOf, count, refusal = tooManyWaiting, now, log }: Deps) => {
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

  const isOver = ({ waiting, meanBytes, messages, bytes }: Queue, limit: QueueLimit): boolean =>
    waiting + messages > limit.messages || waiting * meanBytes + bytes > limit.bytes;
  const isDue = (queue: Queue, limit: QueueLimit): boolean =>
    !queue.counting &&
    (queue.messages >= limit.messages * recountShare ||
      queue.bytes >= limit.bytes * recountShare ||
      isOver(queue, limit)) &&
    now().getTime() - queue.countedAt >= countEveryMs;

  const recount = async (projectId: ProjectId, queue: Queue, own: number): Promise<void> => {
    // Requests that arrive during the count use the previous one, and are added to the new one.
    queue.countedAt = now().getTime();
    queue.counting = true;
    const { waiting, meanBytes, messages, bytes } = queue;
    // A failed count refuses nothing: if the bus is unavailable, the send itself fails.
    const counted = await count(projectId).catch((err: unknown) => {
      log.warn({ err }, "cannot count the waiting sends of a project");
      return 0;
    });
    queue.counting = false;
    if (counted === undefined) return;
    queue.waiting = counted;
    queue.meanBytes = (waiting * meanBytes + bytes) / (waiting + messages);
    queue.messages -= messages - 1;
    queue.bytes -= bytes - own;
  };

  return {
    /** Subtracts an admitted command that was not queued. */
    refund: (projectId: ProjectId, bytes: number) => {
      const queue = queueOf(projectId);
      queue.messages = Math.max(0, queue.messages - 1);
      queue.bytes = Math.max(0, queue.bytes - bytes);
    },
    /** Counts a command before it is queued. Throws quota-exceeded when too many messages or bytes of the project wait. */
    admit: async (projectId: ProjectId, bytes: number) => {
      const limit = limitOf(projectId);
      const queue = queueOf(projectId);
      queue.messages++;
      queue.bytes += bytes;
      const counted = isDue(queue, limit) ? recount(projectId, queue, bytes) : undefined;
      // Only a send that would be refused waits for the count: without an answer of dispatch it takes seconds.
      if (isOver(queue, limit)) await counted;
      if (!isOver(queue, limit)) return;
      queue.messages--;
      queue.bytes -= bytes;
      throw refusal(limit);
    },
  };
};

/**
 * Counts the waiting sends of a project: large ones in the queue of commands, small ones in dispatch's backlog. Undefined when dispatch
 * does not answer. Throws bus-unavailable.
 */
export const createCountQueued =
  (bus: () => Bus, limitOf: (projectId: ProjectId) => number) =>
  async (projectId: ProjectId): Promise<number | undefined> => {
    const [commands, backlog] = await Promise.all([
      countMessages(bus(), "PUSH_CMD", `push.cmd.v1.*.*.${projectId}.>`),
      sendRequest(bus(), backlogRequests.count, { projectId, limit: limitOf(projectId) }).catch((error: unknown) => {
        if (hasCode(error, "service-unavailable")) return undefined;
        throw error;
      }),
    ]);
    return backlog && commands + backlog.queued;
  };
