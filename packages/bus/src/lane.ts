import { attempt } from "./attempt.ts";
import type { Connection } from "./connect.ts";
import { type Handler, streamOf } from "./define-handler.ts";
import type { Job, Step, Task, Verdict } from "./job.ts";
import { correlated } from "./middleware/correlate.ts";
import { deadLettered } from "./middleware/dead-letter.ts";
import { createProgress } from "./middleware/progress.ts";
import { recorded } from "./middleware/record.ts";
import { traced } from "./middleware/trace.ts";
import { createPlace, type Floor, wake } from "./place.ts";
import { pull } from "./pull.ts";
import type { Received } from "./received.ts";
import { settled } from "./settle.ts";
import { createSlots } from "./slots.ts";
import { within } from "./within.ts";

/** One durable being worked on. */
export type Lane = {
  ready(): boolean;
  /** Resolves to the number of messages that were given back because the deadline had passed. */
  stop(deadlineMs: number): Promise<number>;
};

/** What happens around a handler, outermost first. Progress is signalled beside it, for messages that wait too. */
const steps: readonly Step[] = [traced, correlated, recorded, settled, deadLettered];

const process = (job: Job): Promise<Verdict> =>
  steps.reduceRight<() => Promise<Verdict>>(
    (next, step) => () => step(job, next),
    () => attempt(job),
  )();

/** Messages fetched ahead of the handler: a few are enough to bridge a round trip. */
const aheadLimit = 64;
/** Bodies in memory that are not held. The largest message is 1 MiB, so two handlers at least have work. */
const bytesLimit = 16 * 1_048_576;
/** Bodies of held messages. When so much waits, more would wait too, and nothing more is pulled. */
const heldBytesLimit = 64 * 1_048_576;
/** A retry that takes 20 ms, such as a database's answer, then takes a fifth of what runs, and the rest is for what is new. */
const retriesPerSlot = 10;
/** A message that came so often is handled alone: it may be the one that fails its batch. */
const aloneFrom = 4;
/** How soon another replica gets what this one gives back when it stops. */
const givenBackMs = 50;

export const startLane = (connection: Connection, handler: Handler): Lane => {
  const { telemetry } = connection;
  const { durable, batch, concurrency } = handler;
  const tasks = new Map<string, Task>();
  const unstarted: Task[] = [];
  const running = new Set<Promise<void>>();
  const deadline = new AbortController();
  const slots = createSlots(concurrency);
  const load = { active: 0, activeBytes: 0, heldBytes: 0 };
  const capacity = concurrency * batch.size + Math.max(batch.size, Math.min(aheadLimit, concurrency));
  let queued = false;
  let batchTimer: NodeJS.Timeout | undefined;

  const count = (task: Task, sign: 1 | -1) => {
    if (task.held) {
      load.heldBytes += sign * task.received.bytes;
    } else {
      load.active += sign;
      load.activeBytes += sign * task.received.bytes;
    }
  };

  const floor: Floor = {
    slots,
    stopping: false,
    deadline: deadline.signal,
    waiting: { messages: 0, insideHandlers: 0 },
    sleepers: new Set(),
    retriesPerSecond: retriesPerSlot * concurrency,
    held(changed, held) {
      for (const task of changed) {
        count(task, -1);
        task.held = held;
        count(task, 1);
      }
      pulling.ask();
      start();
    },
  };

  const forget = (task: Task) => {
    if (!tasks.delete(task.received.key)) return;
    count(task, -1);
  };

  const receive = (received: Received) => {
    const known = tasks.get(received.key);
    if (known !== undefined) {
      // It was thought lost, and is still in work here: the newer delivery is the one to settle.
      if (!known.settled) Object.assign(known, { received, heardAt: performance.now() });
      return;
    }
    if (floor.stopping) {
      received.nak(givenBackMs * (1 + Math.random()));
      return;
    }
    const receivedAt = performance.now();
    const task: Task = {
      received,
      receivedAt,
      heardAt: receivedAt,
      parsed: handler.parse(received),
      settled: false,
      held: false,
    };
    tasks.set(received.key, task);
    count(task, 1);
    unstarted.push(task);
    start();
  };

  const start = () => {
    while (!floor.stopping && !queued && due()) {
      if (slots.tryAcquire()) {
        launch(nextBatch());
        continue;
      }
      // In line with those that were held and come back, so that neither keeps the other from its turn.
      queued = true;
      void slots.acquire().then(() => {
        queued = false;
        if (!floor.stopping && due()) launch(nextBatch());
        else slots.release();
        start();
      });
    }
  };

  /** Whether the unstarted messages are a batch: enough of them, or the first has waited long enough. */
  const due = (): boolean => {
    const [first] = unstarted;
    if (first === undefined) return false;
    const waited = performance.now() - first.receivedAt;
    if (unstarted.length >= batch.size || waited >= batch.waitMs || goesAlone(first)) return true;
    batchTimer ??= setTimeout(
      () => {
        batchTimer = undefined;
        start();
      },
      Math.ceil(batch.waitMs - waited),
    );
    return false;
  };

  const goesAlone = (task: Task) => batch.size === 1 || !task.parsed.ok || task.received.deliveryCount >= aloneFrom;

  /** What begins the line and goes together: good messages, one that goes alone, or as many that are malformed. */
  const nextBatch = (): Task[] => {
    const good = unstarted.findIndex(({ parsed }) => parsed.ok);
    if (good !== 0) return unstarted.splice(0, good < 0 ? batch.size : Math.min(good, batch.size));
    const alone = unstarted.findIndex(goesAlone);
    return unstarted.splice(0, alone === 0 ? 1 : alone > 0 ? Math.min(alone, batch.size) : batch.size);
  };

  const launch = (batchTasks: readonly Task[]) => {
    const run = work(batchTasks).finally(() => {
      running.delete(run);
      pulling.ask();
      start();
    });
    running.add(run);
  };

  const work = async (jobTasks: readonly Task[]) => {
    const place = createPlace(floor, jobTasks);
    const alone = (task: Task) => process({ connection, handler, tasks: [task], place });
    try {
      if (!jobTasks.every(({ parsed }) => parsed.ok)) {
        // No handler sees them, so a flood of garbage is buried side by side, and keeps what is good waiting for less.
        await Promise.all(jobTasks.map(alone));
        return;
      }
      const verdict = await process({ connection, handler, tasks: jobTasks, place });
      if (verdict.kind === "done" && place.holds() > 0) wake(floor);
      if (verdict.kind === "split") for (const task of jobTasks) await alone(task);
    } catch (err) {
      connection.log.error({ err, durable }, "a message could not be settled");
    } finally {
      for (const task of jobTasks) forget(task);
      place.leave();
    }
  };

  const inMemory = { durable, inFlight: () => tasks.size, held: () => tasks.size - load.active };
  telemetry.consumers.add(inMemory);
  const progress = createProgress(connection, tasks);
  const pulling = pull(connection, {
    stream: streamOf(handler),
    durable,
    room: () => ({
      messages: capacity - load.active,
      bytes: load.heldBytes > heldBytesLimit ? 0 : bytesLimit - load.activeBytes,
    }),
    receive,
    attached: progress.follow,
  });

  const giveBack = (given: readonly Task[]) => {
    for (const task of given) {
      if (!task.settled) task.received.nak(givenBackMs * (1 + Math.random()));
      task.settled = true;
      forget(task);
    }
  };

  return {
    ready: pulling.ready,
    async stop(deadlineMs) {
      floor.stopping = true;
      clearTimeout(batchTimer);
      for (const end of floor.sleepers) end(false);
      await pulling.stop();
      giveBack(unstarted.splice(0));
      const inTime = await within(deadlineMs, Promise.all(running));
      const late = inTime ? [] : [...tasks.values()];
      deadline.abort();
      giveBack(late);
      progress.stop();
      telemetry.consumers.delete(inMemory);
      if (connection.connected) await within(1_000, connection.nc.flush());
      return late.length;
    },
  };
};
