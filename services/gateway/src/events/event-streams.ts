import type { ServerResponse } from "node:http";
import { type Bus, eventBounds, readEvents, type StoredEvent, subscribeToEvents } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import { createResponseStreams } from "../http/response-streams.ts";
import { streamEnded, waitForDrain } from "../http/wait-for-drain.ts";
import { createPacer } from "./pacer.ts";
import { type Start, startPosition } from "./start-position.ts";

export type EventStreamRequest = Start & {
  readonly projectId: ProjectId;
  /** Absent: all types. */
  readonly types?: ReadonlySet<string> | undefined;
  /** Throws when the caller is no longer allowed to read: a token can be revoked while its stream is open. */
  readonly recheck: () => Promise<unknown>;
};

export type EventStreams = {
  /** Returns a function that writes the stream until the client disconnects. Throws rate-limited, position-gone, validation-failed or bus-unavailable. */
  readonly open: (request: EventStreamRequest) => Promise<(response: ServerResponse) => Promise<void>>;
  /** Ends all streams. Clients reconnect to another gateway. */
  readonly stop: () => Promise<void>;
  /** How many of the project are open here. */
  readonly openOf: (projectId: ProjectId) => number;
};

type Deps = {
  readonly bus: () => Bus;
  readonly now: () => Date;
  readonly log: Logger;
  readonly limits: { readonly perProject: number; readonly total: number };
  /** Time without an event after which a heartbeat is sent: proxies close connections that are idle for 30 s or more. */
  readonly heartbeatMs: number;
  /** A client that reads nothing for this long is disconnected; it may resume. Until then at most one read's events wait for it. */
  readonly drainTimeoutMs: number;
};

/** How long a client waits before it reconnects. */
const retryMs = 1_000;

const isBusUnavailable = (error: unknown) => error instanceof HeraldError && error.code === "bus-unavailable";

/** Streams a project's events as server-sent events. It reads from the bus as fast as the client reads, and buffers nothing. */
export const createEventStreams = ({ bus, now, log, limits, heartbeatMs, drainTimeoutMs }: Deps): EventStreams => {
  const streams = createResponseStreams({ limits, what: "streams", whenStopped: "reconnect" });

  /** Writes events until `signal` is aborted. Rejects when the client disconnects or is no longer allowed to read. */
  const writeEvents = async (
    { projectId, types, recheck }: EventStreamRequest,
    start: number,
    response: ServerResponse,
    pace: ReturnType<typeof createPacer>,
    signal: AbortSignal,
  ): Promise<void> => {
    let position = start;
    let wroteAt = 0;
    const write = async (text: string) => {
      if (signal.aborted) throw streamEnded;
      wroteAt = performance.now();
      if (!response.write(text)) await waitForDrain(response, drainTimeoutMs, signal);
    };
    /** Sends an id without data. It moves the client's position past events that it filters out, so the position stays resumable. */
    const heartbeat = () => write(`id: ${position}\n: heartbeat\n\n`);

    /** Reads the next events. When a heartbeat is due, also the last position of the stream before that read. */
    const readNext = async (heartbeatDue: boolean): Promise<{ found: StoredEvent[]; last: number }> => {
      try {
        await recheck();
        const last = heartbeatDue ? (await eventBounds(bus())).last : 0;
        return { found: await readEvents(bus(), projectId, { from: position + 1, types }), last };
      } catch (error) {
        if (!isBusUnavailable(error)) throw error;
        return { found: [], last: 0 };
      }
    };

    await write(`retry: ${retryMs}\nid: ${position}\n: events follow\n\n`);
    while (!signal.aborted) {
      const heartbeatDue = performance.now() - wroteAt >= heartbeatMs;
      const { found, last } = await readNext(heartbeatDue);
      let sent = 0;
      for (const { sequence, event } of found) {
        position = sequence;
        if (event === undefined) continue;
        sent++;
        // Without `event:`, so that a plain `onmessage` also receives types that later versions add.
        await write(`id: ${sequence}\ndata: ${JSON.stringify(event)}\n\n`);
      }
      if (found.length === 0) position = Math.max(position, last);
      if (heartbeatDue && sent === 0) await heartbeat();
      if (found.length === 0) await pace.wait();
    }
  };

  const run = async (
    request: EventStreamRequest,
    position: number,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> => {
    const pace = createPacer(signal);
    const unsubscribe = subscribeToEvents(bus(), request.projectId, pace.wakeSoon);
    try {
      await writeEvents(request, position, response, pace, signal);
    } catch (error) {
      if (error instanceof HeraldError) response.write(`: ${error.messages.join("; ")}\n\n`);
      else if (error !== streamEnded) log.error({ err: error }, "an event stream failed");
      // A client that has not read what is buffered will not read the end either.
      if (response.writableNeedDrain) response.destroy();
    } finally {
      response.end(streams.stopping.aborted ? ": this gateway is shutting down; reconnect\n\n" : undefined);
      unsubscribe();
    }
  };

  return {
    open: (request) =>
      streams.open(request.projectId, async () => {
        const position = await startPosition(bus(), request.projectId, request, now());
        return (response, signal) => run(request, position, response, signal);
      }),
    openOf: streams.openOf,
    stop: streams.stop,
  };
};
