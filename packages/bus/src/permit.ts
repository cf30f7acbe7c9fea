import { errors } from "@herald/contracts";
import { codeOf } from "./bus-error.ts";
import type { Permit, Task } from "./delivery-batch.ts";
import type { Semaphore } from "./semaphore.ts";
import { holdDelayMs } from "./settle.ts";

/** What the places of one durable share. */
export type Limiter = {
  readonly semaphore: Semaphore;
  /** Nothing is tried again any more. */
  stopping: boolean;
  /** Aborted when the deadline of a stop has passed. */
  readonly deadline: AbortSignal;
  /** A job's tasks begin or end to be held. */
  readonly held: (tasks: readonly Task[], held: boolean) => void;
  readonly waiting: { messages: number; insideHandlers: number };
  /** Ends the pauses of those that are held, the longest first; called with false to say that it is no use. */
  readonly sleepers: Set<(again: boolean) => void>;
  /** How many held messages of this durable are tried again in a second, all together. */
  readonly retriesPerSecond: number;
};

/** More handlers than this do not wait inside: their messages wait without them, and cost only their bytes. */
const maxHeldHandlers = 64;
/** A full queue is drained by the next delivery of a batch, which takes about as long. */
const fullQueueMs = 25;
/** Pieces that wait inside handlers are tried so often together: a publish each, which a broker hardly notices. */
const insideRetriesPerSecond = 500;
/** Whoever got through wakes so many others: when a dependency is back, all are at work within a few rounds. */
const wokenPerSuccess = 2;

/** A job's place, taken when it begins. It goes back with `leave`. */
export const acquirePermit = (limiter: Limiter, tasks: readonly Task[]): Permit & { leave(): void } => {
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
    // While another piece of the same handler waits, the handler as a whole does.
    if (--waiting > 0) return;
    // What is given back needs no turn: a stop must not wait behind handlers that do not end.
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
          const least = (1000 * limiter.waiting.insideHandlers) / insideRetriesPerSecond;
          if (!(await pause(Math.max(least, code === "queue-full" ? fullQueueMs : holdDelayMs(code, tries)))))
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
    leave() {
      if (taken) limiter.semaphore.release();
      taken = false;
    },
  };
};

/** What was unavailable for one may be there for others: they are tried now instead of at their time. */
export const wakeHeld = (limiter: Limiter): void => {
  let left = wokenPerSuccess;
  for (const end of limiter.sleepers) {
    if (left-- === 0) return;
    end(true);
  }
};
