import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { HeraldError } from "@herald/kit";
import type { ShareOwner } from "../auth/caller.ts";
import { createSlots, type SlotLimits } from "../limits/project-limits.ts";

type Options = {
  readonly limits: SlotLimits;
  readonly what: "streams" | "exports";
  /** Advice for clients that arrive while this gateway stops. */
  readonly whenStopped: string;
};

/** Writes a response until it is complete, or `signal` is aborted because the client disconnected or this gateway stops. */
type Write = (response: ServerResponse, signal: AbortSignal) => Promise<void>;

/** Responses that take as long as their client reads. Counts them against the limits, and ends them when the gateway stops. */
export const createResponseStreams = ({ limits, what, whenStopped }: Options) => {
  const slots = createSlots(limits, what);
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  const run = async (write: Write, response: ServerResponse): Promise<void> => {
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    if (response.closed) disconnected.abort();
    await write(response, AbortSignal.any([stopping.signal, disconnected.signal]));
  };

  return {
    stopping: stopping.signal,
    openOf: slots.openOf,
    /** Takes a slot until the response is written or `begin` throws. Throws rate-limited, and the errors of `begin`. */
    open: async (
      owner: ShareOwner,
      begin: () => Promise<Write>,
    ): Promise<(response: ServerResponse) => Promise<void>> => {
      if (stopping.signal.aborted)
        throw new HeraldError("service-unavailable", `this gateway is shutting down; ${whenStopped}`);
      const release = slots.acquire(owner);
      try {
        const write = await begin();
        return async (response) => {
          const one = run(write, response).finally(() => {
            release();
            running.delete(one);
          });
          running.add(one);
          await one;
        };
      } catch (error) {
        release();
        throw error;
      }
    },
    /** Ends all responses. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await Promise.all(running);
    },
  };
};

/** Not a failure: the client disconnected or stopped reading, or this gateway stops. */
export const streamEnded = new Error("the stream has ended");

/** Resolves when the client has read the buffered data; rejects with {@link streamEnded} after `timeoutMs`, or when `signal` is aborted. */
export const waitForDrain = async (stream: Writable, timeoutMs: number, signal: AbortSignal): Promise<void> => {
  try {
    await once(stream, "drain", { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
  } catch {
    throw streamEnded;
  }
};
