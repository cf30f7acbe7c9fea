import { errors } from "@herald/contracts";
import { codeOf } from "./bus-error.ts";
import type { Permit, Task } from "./delivery-batch.ts";
import type { Semaphore } from "./semaphore.ts";
import { holdDelayMs } from "./settle.ts";

/** What the permits of one durable share. */
export type Limiter = {
  readonly semaphore: Semaphore;
  /** No retries follow. */
  stopping: boolean;
  /** Aborted when the deadline of a stop has passed. */
  readonly deadline: AbortSignal;
  /** Called when the tasks of a batch become held, or stop being held. */
  readonly held: (tasks: readonly Task[], held: boolean) => void;
  readonly waiting: { messages: number; insideHandlers: number };
  /** End the pauses of held batches, the longest first; `false` means that no retry follows. */
  readonly sleepers: Set<(again: boolean) => void>;
  /** Retries per second of all held messages of this durable. */
  readonly retriesPerSecond: number;
};

/** At most so many handlers wait in `hold`. Messages of the others are held without a running handler and cost only their bytes. */
const maxHeldHandlers = 64;
/** About the time until the next delivery drains a full queue. */
const fullQueueMs = 25;
/** Retries per second of all handlers that wait in `hold`. Each is one publish, a negligible load for the broker. */
const insideRetriesPerSecond = 500;
/** Each success wakes so many held batches: when a dependency is back, all run within a few rounds. */
const wokenPerSuccess = 2;

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
    // During a stop messages are returned at once: they must not wait behind handlers that do not end.
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
    try {
      for (let tries = 0; ; tries++) {
        try {
          const result = await work();
          if (inside) wakeHeld(limiter);
          return result;
        } catch (error) {
          const code = codeOf(error);
          if (errors[code].retry !== "unavailable") throw error;
          if (!inside && limiter.waiting.insideHandlers >= maxHeldHandlers) throw error;
          if (!inside) {
            inside = true;
            holds++;
            limiter.waiting.insideHandlers++;
            give();
          }
          const min = (1000 * limiter.waiting.insideHandlers) / insideRetriesPerSecond;
          if (!(await pause(Math.max(min, code === "queue-full" ? fullQueueMs : holdDelayMs(code, tries)))))
            throw error;
        }
      }
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
    signal: limiter.deadline,
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
