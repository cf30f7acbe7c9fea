import type { ServerResponse } from "node:http";
import {
  type Bus,
  type EventPosition,
  eventBounds,
  firstEventSince,
  nextSequence,
  readEvents,
  type StoredEvent,
  subscribeToEvents,
} from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { HeraldError, hasCode, type Logger } from "@herald/kit";
import type { ShareOwner } from "../auth/caller.ts";
import { createResponseStreams, streamEnded, waitForDrain } from "../http/response-streams.ts";
import type { SlotLimits } from "../limits/project-limits.ts";
import type { EventPositions } from "./event-positions.ts";

export type EventStreamRequest = Start & {
  readonly projectId: ProjectId;
  readonly owner: ShareOwner;
  /** Absent: all types. */
  readonly types?: ReadonlySet<string> | undefined;
  /** Throws when the caller is no longer allowed to read: a token can be revoked while its stream is open. */
  readonly recheck: () => Promise<unknown>;
};

type Deps = {
  readonly bus: () => Bus;
  /** Encrypts the positions of a project. */
  readonly positionsOf: (projectId: ProjectId) => EventPositions;
  readonly now: () => Date;
  readonly log: Logger;
  readonly limits: SlotLimits;
  /** A heartbeat is sent after this time without an event: proxies close connections that are idle for 30 s or more. */
  readonly heartbeatMs: number;
  /** A client that reads nothing for this long is disconnected; it may resume. Until then at most the events of one read are buffered. */
  readonly drainTimeoutMs: number;
};

/** How long a client waits before it reconnects. */
const retryMs = 1_000;

/** Streams a project's events as server-sent events. Reads from the bus only as fast as the client reads, and buffers nothing. */
export const createEventStreams = ({ bus, positionsOf, now, log, limits, heartbeatMs, drainTimeoutMs }: Deps) => {
  const streams = createResponseStreams({ limits, what: "streams", whenStopped: "reconnect" });

  /** Writes events until `signal` is aborted. Rejects when the client disconnects or is no longer allowed to read. */
  const writeEvents = async (
    { projectId, types, recheck }: EventStreamRequest,
    start: EventPosition,
    { seal }: EventPositions,
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
    const heartbeat = () => write(`id: ${seal(position)}\n: heartbeat\n\n`);

    /** Reads the next events, and if a heartbeat is due, the stream's last position before that read. */
    const readNext = async (heartbeatDue: boolean): Promise<{ found: StoredEvent[]; last: number }> => {
      try {
        await recheck();
        const last = heartbeatDue ? (await eventBounds(bus())).last : 0;
        return { found: await readEvents(bus(), projectId, { after: position, types }), last };
      } catch (error) {
        if (!hasCode(error, "bus-unavailable")) throw error;
        return { found: [], last: 0 };
      }
    };

    await write(`retry: ${retryMs}\nid: ${seal(position)}\n: events follow\n\n`);
    while (!signal.aborted) {
      const heartbeatDue = performance.now() - wroteAt >= heartbeatMs;
      const { found, last } = await readNext(heartbeatDue);
      let sent = 0;
      for (const { event, ...after } of found) {
        position = after;
        if (event === undefined) continue;
        sent++;
        // No `event:` field, so that a plain `onmessage` also receives types that later versions add.
        await write(`id: ${seal(position)}\ndata: ${JSON.stringify(event)}\n\n`);
      }
      if (found.length === 0 && last > position.sequence) position = { sequence: last };
      if (heartbeatDue && sent === 0) await heartbeat();
      if (found.length === 0) await pace.wait();
    }
  };

  const run = async (
    request: EventStreamRequest,
    start: EventPosition,
    positions: EventPositions,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> => {
    const pace = createPacer(signal);
    const unsubscribe = subscribeToEvents(bus(), request.projectId, pace.wakeSoon);
    try {
      await writeEvents(request, start, positions, response, pace, signal);
    } catch (error) {
      if (error instanceof HeraldError) response.write(`: ${error.messages.join("; ")}\n\n`);
      else if (error !== streamEnded) log.error({ err: error }, "an event stream failed");
      // A client that has not read the buffered data will not read the end either.
      if (response.writableNeedDrain) response.destroy();
    } finally {
      response.end(streams.stopping.aborted ? ": this gateway is shutting down; reconnect\n\n" : undefined);
      unsubscribe();
    }
  };

  return {
    /** Returns a function that writes the stream until the client disconnects. Throws rate-limited, position-gone, validation-failed or bus-unavailable. */
    open: (request: EventStreamRequest) =>
      streams.open(request.owner, async () => {
        const positions = positionsOf(request.projectId);
        const start = await startPosition(bus(), positions, request, now());
        return (response, signal) => run(request, start, positions, response, signal);
      }),
    /** The project's open streams in this process. */
    openOf: streams.openOf,
    /** Ends all streams. Clients reconnect to another gateway. */
    stop: streams.stop,
  };
};

/** An event is stored a few milliseconds after its hint. */
const minDelayMs = 20;
/** Hints are lost while the bus is disconnected, and revoking a token sends none, so the next read starts after at most this time. */
const maxDelayMs = 1_000;

/** Waits between two reads: briefly after a hint, then increasingly longer. Returns at once when `signal` is aborted. */
export const createPacer = (signal: AbortSignal) => {
  let delay = minDelayMs;
  let wake = () => {};
  const wakeSoon = () => {
    delay = minDelayMs;
    wake();
  };
  signal.addEventListener("abort", wakeSoon, { once: true });
  return {
    wakeSoon,
    wait: (): Promise<void> => {
      if (signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, delay);
        delay = Math.min(delay * 2, maxDelayMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
  };
};

export type Start = { readonly since?: string | undefined; readonly lastEventId?: string | undefined };

const keptMs = 30 * 86_400_000;

const invalid = (message: string) => new HeraldError("validation-failed", message);

/** Returns the position if all events after it are still stored. Throws position-gone. */
export const resumeAfter = (position: EventPosition, { first, last }: { first: number; last: number }) => {
  if (nextSequence(position) >= first && position.sequence <= last) return position;
  const why =
    position.sequence > last
      ? "this position does not exist; the event stream was recreated"
      : "events after it are no longer stored";
  throw new HeraldError(
    "position-gone",
    `Last-Event-ID: ${why}. Start again without it: with \`since\` to read stored events, or without to read new ones`,
  );
};

/**
 * The position after which an event stream begins: the last event that the client received, a time, or now. Throws position-gone when
 * events in between are no longer stored, validation-failed, or bus-unavailable.
 */
export const startPosition = async (
  bus: Bus,
  { open }: EventPositions,
  { projectId, since, lastEventId }: Start & { readonly projectId: ProjectId },
  now: Date,
): Promise<EventPosition> => {
  const resumed = lastEventId === undefined ? undefined : open(lastEventId);
  if (lastEventId !== undefined && resumed === undefined)
    throw invalid("Last-Event-ID: must be the `id` of the last event that you received from this project's stream");
  const from = since === undefined ? undefined : new Date(since);
  if (from !== undefined && from > now) throw invalid("since: must not be in the future");
  if (from !== undefined && now.getTime() - from.getTime() > keptMs)
    throw invalid("since: must be at most 30 days ago; Herald stores events for 30 days");

  const bounds = await eventBounds(bus);
  if (resumed !== undefined) return resumeAfter(resumed, bounds);
  const begin = from && (await firstEventSince(bus, projectId, from));
  return { sequence: begin === undefined ? bounds.last : begin - 1 };
};
