import type { ServerResponse } from "node:http";
import { type Bus, eventBounds, readEvents, type StoredEvent, subscribeToEvents } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import { createPacer } from "./pacer.ts";
import { type Start, startPosition } from "./start-position.ts";
import { createStreamSlots } from "./stream-slots.ts";

export type WantedEvents = Start & {
  readonly projectId: ProjectId;
  /** Absent: all. */
  readonly types?: ReadonlySet<string> | undefined;
  /** Throws when the reader may not read any more: a token is revoked while its stream is open. */
  readonly recheck: () => Promise<unknown>;
};

export type EventStreams = {
  /** Answers what writes the stream, until its reader leaves. Throws rate-limited, position-gone, validation-failed or bus-unavailable. */
  readonly open: (wanted: WantedEvents) => Promise<(response: ServerResponse) => Promise<void>>;
  /** Ends all streams: their readers connect again, to another gateway. */
  readonly stop: () => Promise<void>;
};

type Options = {
  readonly bus: () => Bus;
  readonly now: () => Date;
  readonly log: Logger;
  readonly limits: { readonly perProject: number; readonly inAll: number };
  /** Silence after which a line says that the stream is alive: proxies cut what is silent for 30 s and more. */
  readonly heartbeatMs: number;
  /** A reader that takes nothing for so long is cut off; it may resume. What waits for it meanwhile is one read's worth. */
  readonly patienceMs: number;
};

/** A reader whose stream broke off comes back after so long. */
const retryMs = 1_000;

const isUnavailable = (error: unknown) => error instanceof HeraldError && error.code === "bus-unavailable";

/** Not a fault: the reader has left, or takes nothing, or this gateway stops before it did. */
const readerGone = new Error("the reader is gone");

/** Resolves when the reader has taken what was written; rejects with {@link readerGone} otherwise. */
const drained = (response: ServerResponse, patienceMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      response.off("drain", onDrain);
      signal.removeEventListener("abort", onEnd);
      settle();
    };
    const onDrain = () => end(resolve);
    const onEnd = () => end(() => reject(readerGone));
    const timer = setTimeout(onEnd, patienceMs);
    response.on("drain", onDrain);
    signal.addEventListener("abort", onEnd);
  });

/** Shows projects their events as server-sent events: read from the bus as fast as the reader takes them, and held nowhere. */
export const createEventStreams = ({ bus, now, log, limits, heartbeatMs, patienceMs }: Options): EventStreams => {
  const slots = createStreamSlots(limits);
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  /** Writes what comes until `signal` is aborted. Rejects when the reader is gone, or may not read any more. */
  const follow = async (
    { projectId, types, recheck }: WantedEvents,
    start: number,
    response: ServerResponse,
    pace: ReturnType<typeof createPacer>,
    signal: AbortSignal,
  ): Promise<void> => {
    let position = start;
    let wroteAt = 0;
    const write = async (text: string) => {
      if (signal.aborted) throw readerGone;
      wroteAt = performance.now();
      if (!response.write(text)) await drained(response, patienceMs, signal);
    };
    /** An id without data moves the reader's position: what it need not see is not gone for it some day. */
    const beat = (words: string) => write(`id: ${position}\n: ${words}\n\n`);

    /** The next events; where a sign of life is due, also how far the stream had come before. */
    const look = async (due: boolean): Promise<{ found: StoredEvent[]; last: number }> => {
      try {
        await recheck();
        const last = due ? (await eventBounds(bus())).last : 0;
        return { found: await readEvents(bus(), projectId, { from: position + 1, types }), last };
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        return { found: [], last: 0 };
      }
    };

    await write(`retry: ${retryMs}\nid: ${position}\n: events follow\n\n`);
    while (!signal.aborted) {
      const due = performance.now() - wroteAt >= heartbeatMs;
      const { found, last } = await look(due);
      let shown = 0;
      for (const { sequence, event } of found) {
        position = sequence;
        if (event === undefined) continue;
        shown++;
        // Without `event:`, so that a plain `onmessage` sees types too that later versions add.
        await write(`id: ${sequence}\ndata: ${JSON.stringify(event)}\n\n`);
      }
      if (found.length === 0) position = Math.max(position, last);
      if (due && shown === 0) await beat("still here");
      if (found.length === 0) await pace.wait();
    }
  };

  const run = async (wanted: WantedEvents, position: number, response: ServerResponse): Promise<void> => {
    const left = new AbortController();
    response.once("close", () => left.abort());
    if (response.closed) left.abort();
    const signal = AbortSignal.any([stopping.signal, left.signal]);
    const pace = createPacer(signal);
    const deaf = subscribeToEvents(bus(), wanted.projectId, pace.hurry);
    try {
      await follow(wanted, position, response, pace, signal);
    } catch (error) {
      if (error instanceof HeraldError) response.write(`: ${error.messages.join("; ")}\n\n`);
      else if (error !== readerGone) log.error({ err: error }, "a stream of events failed");
      // What it did not take so far it does not take any more.
      if (response.writableNeedDrain) response.destroy();
    } finally {
      response.end(stopping.signal.aborted ? ": this gateway stops; connect again\n\n" : undefined);
      deaf();
    }
  };

  return {
    open: async (wanted) => {
      if (stopping.signal.aborted) throw new HeraldError("service-unavailable", "this gateway stops; connect again");
      const release = slots.take(wanted.projectId);
      try {
        const position = await startPosition(bus(), wanted.projectId, wanted, now());
        return async (response) => {
          const one = run(wanted, position, response).finally(() => {
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
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
};
