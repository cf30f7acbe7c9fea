import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "@herald/contracts";
import { codeOf } from "./bus-error.ts";
import type { Place, Task } from "./job.ts";
import { holdDelayMs } from "./settle.ts";
import type { Slots } from "./slots.ts";

/** What the places of one durable share. */
export type Floor = {
  readonly slots: Slots;
  /** Aborted when the service begins to stop: nothing is tried again then. */
  readonly stopping: AbortSignal;
  /** Aborted when its deadline has passed. */
  readonly deadline: AbortSignal;
  /** Handlers that wait inside `hold`, with all that they have read in memory. */
  waitingInside: number;
  /** A job's tasks begin or end to be held. */
  readonly held: (tasks: readonly Task[], held: boolean) => void;
};

/** More handlers than this do not wait inside: their messages wait without them, and cost only their bytes. */
const waitingInsideLimit = 64;
/** A full queue is drained by the next delivery of a batch, which takes about as long. */
const fullQueueMs = 25;

/** A job's place, taken when it begins. It goes back with `leave`. */
export const createPlace = (floor: Floor, tasks: readonly Task[]): Place & { leave(): void } => {
  let taken = true;
  let waiting = 0;
  let holds = 0;

  const give = () => {
    if (waiting++ > 0) return;
    taken = false;
    floor.held(tasks, true);
    floor.slots.release();
  };
  const take = async () => {
    // While another piece of the same handler waits, the handler as a whole does.
    if (--waiting > 0) return;
    await floor.slots.acquire();
    taken = true;
    floor.held(tasks, false);
  };
  const pause = (ms: number) => sleep(ms, true, { signal: floor.stopping }).catch(() => false);

  const hold = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    let inside = false;
    try {
      for (let tries = 0; ; tries++) {
        try {
          return await work();
        } catch (error) {
          const code = codeOf(error);
          if (errors[code].retry !== "away") throw error;
          if (!inside && floor.waitingInside >= waitingInsideLimit) throw error;
          if (!inside) {
            inside = true;
            holds++;
            floor.waitingInside++;
            give();
          }
          if (!(await pause(code === "queue-full" ? fullQueueMs : holdDelayMs(code, tries)))) throw error;
        }
      }
    } finally {
      if (inside) {
        floor.waitingInside--;
        await take();
      }
    }
  };

  return {
    holds: () => holds,
    hold,
    signal: floor.deadline,
    async wait(ms) {
      holds++;
      give();
      const again = await pause(ms);
      await take();
      return again && !floor.stopping.aborted;
    },
    leave() {
      if (taken) floor.slots.release();
      taken = false;
    },
  };
};
