import { retryWhileUnavailable } from "@herald/kit";
import { codeOf } from "./bus-error.ts";
import { holdDelayMs, type Permit, type Task } from "./process-batch.ts";

/** Limits the handlers that wait in `hold`. Messages above the limit are held without a running handler and cost only their bytes. */
const maxHeldHandlers = 64;
/** At 20 ms per retry, retries take a fifth of the concurrency; the rest stays for new messages. */
const retriesPerPermit = 10;
/** About the time until the next delivery drains a full queue. */
const fullQueueMs = 25;
/** Retries per second of all handlers that wait in `hold`. Each is one publish, a negligible load for the broker. */
const insideRetriesPerSecond = 500;
/** How many held batches each success wakes: after a dependency is back, all run within a few rounds. */
const wokenPerSuccess = 2;

/** The state that all permits of one durable share. It calls `held` when the tasks of a batch become held, or stop being held. */
export const createLimiter = (concurrency: number, held: (tasks: readonly Task[], held: boolean) => void) => ({
  held,
  semaphore: createSemaphore(concurrency),
  /** Whether the service stops, so that no retry follows. */
  stopping: false,
  /** Aborted when the deadline of `stop` has passed. */
  deadline: new AbortController(),
  waiting: { messages: 0, insideHandlers: 0 },
  /** End the pauses of held batches, the longest first; `false` means that no retry follows. */
  sleepers: new Set<(again: boolean) => void>(),
  /** Retries per second of all held messages of this durable. */
  retriesPerSecond: retriesPerPermit * concurrency,
});
type Limiter = ReturnType<typeof createLimiter>;

/** Makes the permit of a batch that holds a slot of the semaphore. `release` returns the slot. */
export const acquirePermit = (limiter: Limiter, tasks: readonly Task[]): Permit & { release(): void } => {
  let taken = true;
  let waiting = 0;
  let holds = 0;

  const give = () => {
    if (waiting++ > 0) return;
    taken = false;
    limiter.waiting.messages += tasks.length;
    limiter.held(tasks, true);
    limiter.semaphore.release();
  };
  const take = async () => {
    // While another step of the same handler waits, the whole handler waits.
    if (--waiting > 0) return;
    // During a stop return messages at once: they must not wait for handlers that do not end.
    if (!limiter.stopping) {
      await limiter.semaphore.acquire();
      taken = true;
    }
    limiter.waiting.messages -= tasks.length;
    limiter.held(tasks, false);
  };
  const pause = (ms: number) =>
    new Promise<boolean>((resolve) => {
      const end = (again: boolean) => {
        clearTimeout(timer);
        limiter.sleepers.delete(end);
        resolve(again && !limiter.stopping);
      };
      const timer = setTimeout(end, limiter.stopping ? 0 : ms, true);
      limiter.sleepers.add(end);
    });

  const hold = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    let inside = false;
    const pauseInside = async (error: unknown, tries: number): Promise<boolean> => {
      if (!inside && limiter.waiting.insideHandlers >= maxHeldHandlers) return false;
      if (!inside) {
        inside = true;
        holds++;
        limiter.waiting.insideHandlers++;
        give();
      }
      const code = codeOf(error);
      const min = (1000 * limiter.waiting.insideHandlers) / insideRetriesPerSecond;
      return pause(Math.max(min, code === "queue-full" ? fullQueueMs : holdDelayMs(code, tries)));
    };
    try {
      const result = await retryWhileUnavailable(work, pauseInside);
      if (inside) wakeHeld(limiter);
      return result;
    } finally {
      if (inside) {
        limiter.waiting.insideHandlers--;
        await take();
      }
    }
  };

  return {
    holds: () => holds,
    hold,
    signal: limiter.deadline.signal,
    async wait(ms) {
      holds++;
      give();
      const again = await pause(Math.max(ms, (1000 * limiter.waiting.messages) / limiter.retriesPerSecond));
      await take();
      return again && !limiter.stopping;
    },
    release() {
      if (taken) limiter.semaphore.release();
      taken = false;
    },
  };
};

/** After a success the dependency is probably back: retries some held batches now. */
export const wakeHeld = (limiter: Limiter): void => {
  let left = wokenPerSuccess;
  for (const end of limiter.sleepers) {
    if (left-- === 0) return;
    end(true);
  }
};

/** Limits concurrency. */
export const createSemaphore = (limit: number) => {
  const waiters: (() => void)[] = [];
  let taken = 0;
  const tryAcquire = () => {
    if (taken >= limit) return false;
    taken++;
    return true;
  };
  return {
    /** Takes a slot if one is free. */
    tryAcquire,
    /** Waits for a slot, first come, first served. */
    acquire: (): Promise<void> => (tryAcquire() ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    release() {
      // Hands the slot to the first waiter, so that new callers cannot overtake it.
      const next = waiters.shift();
      if (next === undefined) taken--;
      else next();
    },
  };
};
