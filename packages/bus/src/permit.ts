import type { ErrorCode } from "@herald/contracts";
import { retryWhileUnavailable } from "@herald/kit";
import { codeOf } from "./bus-error.ts";

/** Permission for a batch to run, limited by the concurrency. The batch releases it while it waits for an unavailable dependency. */
export type Permit = {
  /** How often the batch had to wait. */
  readonly holds: () => number;
  /** Waits without occupying the permit. Resolves to false when the service stops and no retry follows. */
  wait(ms: number): Promise<boolean>;
  /** Waits the same way for one step inside a handler. */
  readonly hold: <Result>(work: () => Promise<Result>) => Promise<Result>;
  readonly signal: AbortSignal;
};

/** Limits the handlers that wait in `hold`. Messages above the limit are blocked without a running handler and cost only their bytes. */
const maxBlockedHandlers = 64;
/** At 20 ms per retry, retries take a fifth of the concurrency; the rest stays for new messages. */
const retriesPerPermit = 10;
/** About the time until the next delivery drains a full queue. */
const fullQueueMs = 25;
/** Retries per second of all handlers that wait in `hold`. Each is one publish, a negligible load for the broker. */
const insideRetriesPerSecond = 500;
/** How many blocked batches each success wakes: after a dependency is back, all run within a few rounds. */
const wokenPerSuccess = 2;

/** The state that all permits of one durable share. It calls `blocked` when the tasks of a batch become blocked, or stop being blocked. */
export const createLimiter = <Task>(
  concurrency: number,
  blocked: (tasks: readonly Task[], blocked: boolean) => void,
) => ({
  blocked,
  semaphore: createSemaphore(concurrency),
  /** Whether the service stops, so that no retry follows. */
  stopping: false,
  /** Aborted when the deadline of `stop` has passed. */
  deadline: new AbortController(),
  waiting: { messages: 0, insideHandlers: 0 },
  /** End the pauses of blocked batches, the longest first; `false` means that no retry follows. */
  sleepers: new Set<(again: boolean) => void>(),
  /** Retries per second of all blocked messages of this durable. */
  retriesPerSecond: retriesPerPermit * concurrency,
});
type Limiter<Task> = ReturnType<typeof createLimiter<Task>>;

/** Makes the permit of a batch that holds a slot of the semaphore. `release` returns the slot. */
export const acquirePermit = <Task>(limiter: Limiter<Task>, tasks: readonly Task[]): Permit & { release(): void } => {
  let taken = true;
  let waiting = 0;
  let holds = 0;

  const give = () => {
    if (waiting++ > 0) return;
    taken = false;
    limiter.waiting.messages += tasks.length;
    limiter.blocked(tasks, true);
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
    limiter.blocked(tasks, false);
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
      if (!inside && limiter.waiting.insideHandlers >= maxBlockedHandlers) return false;
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
      if (inside) wakeBlocked(limiter);
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

/** After a success the dependency is probably back: retries some blocked batches now. */
export const wakeBlocked = ({ sleepers }: Pick<Limiter<never>, "sleepers">): void => {
  let left = wokenPerSuccess;
  for (const end of sleepers) {
    if (left-- === 0) return;
    end(true);
  }
};

/** A full queue drains within milliseconds; a database or a service needs seconds to recover. */
export const holdDelayMs = (code: ErrorCode, tries: number, random = Math.random): number => {
  const longest = code === "queue-full" ? 1_000 : 5_000;
  const base = Math.min(longest, 25 * 2 ** Math.min(tries, 10));
  return base * (0.75 + 0.5 * random());
};

/** The handlers and requests that run in a process. */
export const createRunning = () => ({
  count: 0,
  /** Resolves when the work that runs alone has ended. */
  closed: undefined as Promise<void> | undefined,
  onIdle: () => {},
});
export type Running = ReturnType<typeof createRunning>;

/** Runs beside other work, after the work that runs alone. */
export const runBeside = async <Result>(running: Running, work: () => Promise<Result>): Promise<Result> => {
  while (running.closed) await running.closed;
  running.count++;
  try {
    return await work();
  } finally {
    if (--running.count === 0) running.onIdle();
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
