import { withTimeout } from "@herald/kit";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { type Handler, type Parsed, parseEvents, streamOf } from "./define-handler.ts";
import { acquirePermit, createLimiter, wakeBlocked } from "./permit.ts";
import { processBatch, type Task } from "./process-batch.ts";
import { pull } from "./pull.ts";
import { createProgress, eventsOf, type Received } from "./received-message.ts";
import { createSettledEvents, splitEvents } from "./split-events.ts";
import { removeNotes, suspectFromDelivery } from "./suspects.ts";

/** Handlers that are consuming. */
export type Consuming = {
  /** For readiness: the bus is connected, every durable exists, and the consumers pull. */
  ready(): boolean;
  /**
   * Stops pulling, returns messages that are blocked or not started, and waits for running handlers. After `deadlineMs` it aborts their
   * signal and returns their messages too. Leaves no message in flight, no timer and no subscription.
   */
  stop(deadlineMs: number): Promise<void>;
};

/** Consumes the handlers' durables until it is stopped. Survives reconnects, leader changes and durables that do not exist yet. */
export const consume = (bus: Bus, handlers: readonly Handler[]): Consuming => {
  const connection = connectionOf(bus);
  const consumers = handlers.map((handler) => startConsumer(connection, handler));
  return {
    ready: () => consumers.every((consumer) => consumer.ready()),
    async stop(deadlineMs) {
      const returned = await Promise.all(consumers.map((consumer) => consumer.stop(deadlineMs)));
      const late = returned.reduce((sum, count) => sum + count, 0);
      if (late > 0)
        connection.log.warn({ late, deadlineMs }, "returned messages whose handlers did not end before the deadline");
    },
  };
};

/** Messages fetched ahead of the handler: a few are enough to bridge a round trip. */
const maxPrefetched = 64;
/** Bytes of messages that are not blocked. The largest message is 1 MiB, so several handlers always have work. */
const maxActiveBytes = 16 * 1_048_576;
/** Bytes of blocked messages. Above this the consumer stops pulling: further messages would be blocked too. */
const maxBlockedBytes = 64 * 1_048_576;
/** How long a stop waits if the broker is unavailable: nothing can be acknowledged, and what still runs may wait for the broker. */
const disconnectedStopMs = 5_000;
/** How soon the broker redelivers the messages that a stopping replica returns. */
const returnDelayMs = 50;

/** Consumes one durable. `stop` resolves to the number of messages that it returned after the deadline. */
const startConsumer = (connection: BusConnection, handler: Handler) => {
  const { telemetry } = connection;
  const { durable, batch, concurrency } = handler;
  const tasks = new Map<string, Task>();
  const unstarted: Task[] = [];
  /** How many messages and events these are for a handler. */
  let unstartedSize = 0;
  const settledEvents = createSettledEvents();
  const running = new Set<Promise<void>>();
  const load = { active: 0, activeBytes: 0, blocked: 0, blockedBytes: 0 };
  const capacity = concurrency * batch.size + Math.max(batch.size, Math.min(maxPrefetched, concurrency));
  let queued = false;
  let batchTimer: NodeJS.Timeout | undefined;

  const count = (task: Task, sign: 1 | -1) => {
    if (task.blocked) {
      load.blocked += sign;
      load.blockedBytes += sign * task.received.bytes;
    } else {
      load.active += sign * task.data.length;
      load.activeBytes += sign * task.received.bytes;
    }
  };

  const limiter = createLimiter<Task>(concurrency, (changed, blocked) => {
    for (const task of changed) {
      count(task, -1);
      task.blocked = blocked;
      count(task, 1);
    }
    pulling.ask();
    start();
  });
  const { semaphore } = limiter;

  const removeTask = (task: Task) => {
    if (!tasks.delete(task.received.key)) return;
    count(task, -1);
  };

  const receive = (message: Received) => {
    const events = tasks.has(message.key) ? undefined : eventsOf(message);
    // All events are one task, unless one of them may fail: then each is a task of its own.
    const isOne = events !== undefined && message.deliveryCount === 1 && events.length <= batch.size;
    const data = isOne ? parseEvents(handler, message, events) : undefined;
    if (events === undefined || data !== undefined) enqueue(message, events, data);
    else for (const event of splitEvents(message, events, settledEvents)) enqueue(event);
    start();
  };

  const enqueue = (received: Received, events?: Task["events"], data?: Task["data"]) => {
    const known = tasks.get(received.key);
    if (known !== undefined) {
      // The broker redelivered a message that is still being handled here: settle the newer delivery.
      if (!known.settled) Object.assign(known, { received, signalledAt: performance.now() });
      return;
    }
    if (limiter.stopping) {
      received.nak(returnDelayMs * (1 + Math.random()));
      return;
    }
    const task = addTask(received, events, data);
    unstarted.push(task);
    unstartedSize += task.data.length;
  };

  const addTask = (received: Received, events?: Task["events"], data?: Task["data"]): Task => {
    const parsed: Parsed = data === undefined ? handler.parserOf(received)(received.json()) : { ok: true, data };
    const receivedAt = performance.now();
    const task: Task = {
      received,
      receivedAt,
      signalledAt: receivedAt,
      data: data ?? [parsed.ok ? parsed.data : undefined],
      events,
      malformed: parsed.ok ? undefined : parsed.detail,
      settled: false,
      blocked: false,
    };
    tasks.set(received.key, task);
    count(task, 1);
    return task;
  };

  /** Replaces joined messages by their events, of which one failed. */
  const split = (batchTasks: Task[]) => {
    const parts = batchTasks.flatMap((task) => {
      if (task.events === undefined || task.settled) return [task];
      removeTask(task);
      return splitEvents(task.received, task.events, settledEvents).map((event) => addTask(event));
    });
    // In place, because the permit has the same array.
    batchTasks.splice(0, batchTasks.length, ...parts);
  };

  const start = () => {
    while (!limiter.stopping && !queued && isBatchReady()) {
      if (semaphore.tryAcquire()) {
        startBatch(nextBatch());
        continue;
      }
      // Queues behind resumed batches, so that new and blocked messages take turns.
      queued = true;
      void semaphore.acquire().then(() => {
        queued = false;
        if (!limiter.stopping && isBatchReady()) startBatch(nextBatch());
        else semaphore.release();
        start();
      });
    }
  };

  /** Whether a batch can start: it is full, or its first message has waited long enough. */
  const isBatchReady = (): boolean => {
    const [first] = unstarted;
    if (first === undefined) return false;
    const waited = performance.now() - first.receivedAt;
    if (unstartedSize >= batch.size || waited >= batch.waitMs || runsAlone(first)) return true;
    batchTimer ??= setTimeout(
      () => {
        batchTimer = undefined;
        start();
      },
      Math.ceil(batch.waitMs - waited),
    );
    return false;
  };

  const runsAlone = (task: Task) =>
    batch.size === 1 || task.malformed !== undefined || task.received.deliveryCount >= suspectFromDelivery;

  /** Takes the next messages: valid ones, one that must run alone, or malformed ones. */
  const nextBatch = (): Task[] => {
    const good = unstarted.findIndex(({ malformed }) => malformed === undefined);
    if (good !== 0) return take(good < 0 ? batch.size : Math.min(good, batch.size));
    let size = 0;
    const end = unstarted.findIndex((task) => {
      size += task.data.length;
      return runsAlone(task) || size > batch.size;
    });
    return take(end < 0 ? unstarted.length : Math.max(end, 1));
  };

  const take = (count: number): Task[] => {
    const taken = unstarted.splice(0, count);
    for (const { data } of taken) unstartedSize -= data.length;
    return taken;
  };

  const startBatch = (batchTasks: Task[]) => {
    const run = work(batchTasks).finally(() => {
      running.delete(run);
      pulling.ask();
      start();
    });
    running.add(run);
  };

  const work = async (batchTasks: Task[]) => {
    const permit = acquirePermit(limiter, batchTasks);
    const alone = (task: Task) => processBatch({ connection, handler, tasks: [task], permit });
    try {
      if (batchTasks.some(({ malformed }) => malformed !== undefined)) {
        // Malformed messages reach no handler. Dead-lettering them concurrently delays valid ones less.
        await Promise.all(batchTasks.map(alone));
        return;
      }
      const settlement = await processBatch({ connection, handler, tasks: batchTasks, permit });
      if (settlement.kind === "acked" && permit.holds() > 0) wakeBlocked(limiter);
      if (settlement.kind === "split") {
        split(batchTasks);
        for (const task of batchTasks) await alone(task);
      }
    } catch (err) {
      connection.log.error({ err, durable }, "could not settle a message");
    } finally {
      for (const task of batchTasks) removeTask(task);
      permit.release();
    }
  };

  const inMemory = { durable, inFlight: () => tasks.size, waiting: () => load.blocked };
  telemetry.consumers.add(inMemory);
  const progress = createProgress(connection, tasks);
  const pulling = pull(connection, {
    stream: streamOf(handler),
    durable,
    room: () => ({
      messages: capacity - load.active,
      bytes: load.blockedBytes > maxBlockedBytes ? 0 : maxActiveBytes - load.activeBytes,
    }),
    receive,
    attached: progress.follow,
  });

  const returnMessages = (given: readonly Task[]) => {
    for (const task of given) {
      if (!task.settled) task.received.nak(returnDelayMs * (1 + Math.random()));
      task.settled = true;
      removeTask(task);
    }
  };

  return {
    ready: pulling.ready,
    async stop(deadlineMs: number): Promise<number> {
      limiter.stopping = true;
      clearTimeout(batchTimer);
      for (const end of limiter.sleepers) end(false);
      await pulling.stop();
      returnMessages(take(unstarted.length));
      const ended = Promise.all(running);
      const firstMs = Math.min(deadlineMs, disconnectedStopMs);
      const atOnce = await withTimeout(firstMs, ended);
      const inTime = atOnce || (connection.connected && (await withTimeout(deadlineMs - firstMs, ended)));
      const late = inTime ? [] : [...tasks.values()];
      limiter.deadline.abort();
      returnMessages(late);
      if (late.length > 0) await withTimeout(1_000, removeNotes(connection));
      progress.stop();
      telemetry.consumers.delete(inMemory);
      if (connection.connected) await withTimeout(1_000, connection.nc.flush());
      return late.length;
    },
  };
};
