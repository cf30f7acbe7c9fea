import type { Socket } from "node:net";
import { socketErrorText } from "@herald/kit";
import { connectTls, type TlsTickets } from "../tls-socket.ts";
import type { TransportAnswer, TransportLimits, TransportOptions } from "../transport.ts";
import { createAnswers } from "./answers.ts";
import { createInbound, maxFields } from "./inbound.ts";
import { createKeepalive } from "./keepalive.ts";
import { createOutbound, createOutput, maxUnread } from "./outbound.ts";
import { createConcurrencyLimit, createFloodGuard } from "./peer-limits.ts";
import {
  Code,
  ConnectionError,
  connectionPreface,
  defaultWindow,
  Flag,
  FrameType,
  type PendingRequest,
  Setting,
  type Stream,
} from "./wire.ts";

/** Bytes that the peer may send before a WINDOW_UPDATE: much more than one turn of the event loop reads. */
const receiveWindow = 1_048_576;

export type ConnectionEvents = {
  /** A stream may have become free, or the connection stopped accepting requests. */
  changed(): void;
  finished(pending: PendingRequest, answer: TransportAnswer): void;
  /** The socket is closed. `served`: the connection answered at least one request, else it counts as a failed attempt. */
  closed(connection: Connection, served: boolean, reason: string): void;
};

/** One HTTP/2 connection over TLS, from its first packet to its last. */
export type Connection = {
  /** Accepts new requests, or will once it is connected and the peer is known to be alive. */
  usable(): boolean;
  connecting(): boolean;
  /** How many more requests may be written now. */
  room(): number;
  /** Writes the request, which the pool has checked, and sets its `streamId`. */
  send(pending: PendingRequest): void;
  /** Cancels the stream and pings the peer: the caller no longer waits for the answer. */
  abandon(pending: PendingRequest): void;
  /** Accepts no new requests and closes after the last answer. */
  drain(): void;
  destroy(reason: string): void;
};

const debugDataShown = 120;

/**
 * Opens a connection that reads and writes HTTP/2 frames itself: a request costs a fraction of what it costs with `node:http2`.
 * Requests wait for the peer's SETTINGS, because a peer may allow only one stream before that, as APNs does. `tunnel`: a connection to
 * the peer that `dial` opened.
 */
export function openConnection(
  options: TransportOptions,
  limits: TransportLimits,
  events: ConnectionEvents,
  tickets: TlsTickets,
  tunnel?: Socket,
): Connection {
  const streams = new Map<number, Stream>();
  const concurrency = createConcurrencyLimit(limits.maxInFlight);
  const guard = createFloodGuard();
  let state: "connecting" | "open" | "draining" | "closed" = "connecting";
  let saidGoodbye = false;
  /** Ignores everything that the peer still sends. */
  let deaf = false;
  let lingering: NodeJS.Timeout | undefined;
  let peerLimit = Number.POSITIVE_INFINITY;
  let lastProcessed = Number.POSITIVE_INFINITY;
  /** The newest stream with bytes handed to the socket. */
  let written = 0;
  let opened = 0;
  let answered = 0;
  let lastUsed = performance.now();
  let reason = "the peer closed the connection";

  const socket = connectTls(options, tickets, tunnel);
  const output = createOutput(socket, () => {
    written = outbound.newest();
  });
  const outbound = createOutbound({ output, guard, authority: new URL(options.origin).host, streams });
  const { maxBodyBytes } = limits;
  const answers = createAnswers({ output, guard, streams, maxBodyBytes, window: receiveWindow, end });

  function remove(stream: Stream): void {
    streams.delete(stream.id);
    outbound.forget(stream);
    if (streams.size === 0) lastUsed = performance.now();
  }

  /** Removes the stream and gives its request the answer. */
  function end(stream: Stream, answer: TransportAnswer): void {
    remove(stream);
    if (answer.kind === "answered") {
      answered++;
      concurrency.answered();
    } else if (answer.kind === "unprocessed" && state === "open") {
      if (concurrency.refused(stream.id, outbound.newest(), streams.size)) {
        reason = "the peer refuses every stream";
        answered = 0;
        state = "draining";
      }
    }
    events.finished(stream.pending, answer);
  }

  /** `unprocessed`: never written, above the last stream of a GOAWAY, or refused. Once an answer has begun, the peer has acted. */
  function fail(stream: Stream, why: string, refused = false): void {
    answers.forget(stream);
    const untouched = stream.id > written || stream.id > lastProcessed || refused;
    end(stream, { kind: untouched && stream.status === 0 ? "unprocessed" : "unknown", reason: why });
  }

  const read = createInbound(
    {
      setting(id, value) {
        if (id === Setting.maxStreams) peerLimit = value;
        else if (id === Setting.initialWindow) outbound.setInitialWindow(value);
        else if (id === Setting.headerTableSize) outbound.limitTable(value);
      },
      settingsRead() {
        output.frame(FrameType.settings, Flag.ack, 0);
        if (state !== "connecting") return;
        clearTimeout(connectDeadline);
        state = "open";
      },
      pinged: (payload) => output.pong(payload),
      pingAnswered: () => keepalive.onPong(),
      wentAway(lastStreamId, code, debugData) {
        lastProcessed = Math.min(lastProcessed, lastStreamId);
        state = "draining";
        reason = goawayWords(code, debugData);
        for (const stream of [...streams.values()]) if (stream.id > lastProcessed) fail(stream, reason);
        // After a GOAWAY with an error the peer may still finish its answers, but not for long.
        if (code !== Code.noError) linger();
      },
      widened(streamId, by) {
        const stream = streams.get(streamId);
        if (streamId === 0 || stream !== undefined) outbound.widen(stream, by);
      },
      reset(streamId, code) {
        const stream = streams.get(streamId);
        if (stream === undefined) guard.nuisance();
        else fail(stream, `the stream ended with code ${code} before a whole answer`, code === Code.refusedStream);
      },
      fields: answers.fields,
      data: answers.data,
      streamBroken: answers.broken,
      wasOpened: (streamId) => streamId % 2 === 1 && streamId <= outbound.newest(),
    },
    guard,
  );

  function onChunk(chunk: Buffer): void {
    if (deaf) return;
    try {
      read(chunk);
      if (output.unread() > 2 * maxUnread) throw new ConnectionError(Code.enhanceYourCalm, "the peer reads nothing");
    } catch (error) {
      // No input from a peer may end the process, so a bug of our own ends only the connection, with `this side` in its reason.
      leave(error instanceof ConnectionError ? error : new ConnectionError(Code.internalError, `this side: ${error}`));
      return;
    }
    settle();
  }

  /** Call this after anything that may have made room or ended a stream. */
  function settle(): void {
    outbound.resume();
    finish();
    events.changed();
  }

  /** Leaves after a protocol error. Requests that the peer may have acted on end as `unknown`. */
  function leave({ code, message }: ConnectionError): void {
    reason = message;
    state = "draining";
    deaf = true;
    failAll();
    goodbye(code);
    events.changed();
  }

  function failAll(): void {
    for (const stream of [...streams.values()]) fail(stream, reason);
  }

  function drain(): void {
    if (state === "connecting") destroy("closed while connecting");
    if (state === "open") state = "draining";
    finish();
  }

  /** Closes a draining connection once no stream is open. */
  function finish(): void {
    if (state === "draining" && streams.size === 0) goodbye(Code.noError);
  }

  function goodbye(code: number): void {
    if (saidGoodbye) return;
    saidGoodbye = true;
    output.frame(FrameType.goaway, 0, 0, 0, code);
    output.flush();
    socket.end();
    linger();
  }

  /** Destroys the socket after `closeTimeoutMs` if the peer does not end its side. */
  function linger(): void {
    lingering ??= setTimeout(() => socket.destroy(), limits.closeTimeoutMs);
  }

  function destroy(why: string): void {
    reason = why;
    socket.destroy();
  }

  const keepalive = createKeepalive({
    limits,
    sendPing() {
      if (state === "connecting" || socket.destroyed) return false;
      output.frame(FrameType.ping, 0, 0, 0, 0);
      return true;
    },
    idleSince: () => (state === "connecting" || streams.size > 0 ? undefined : lastUsed),
    onDead: () => destroy("the peer does not answer PING"),
    onIdle: drain,
  });
  const connectDeadline = setTimeout(
    () => destroy(`no HTTP/2 connection within ${limits.connectTimeoutMs} ms`),
    limits.connectTimeoutMs,
  );

  socket.once("secureConnect", () => {
    if (socket.alpnProtocol !== "h2") return destroy("the peer does not speak HTTP/2");
    output.raw(connectionPreface);
    // A stream's window holds the longest accepted body, so the body never needs a WINDOW_UPDATE.
    output.settings(
      [Setting.enablePush, 0],
      [Setting.initialWindow, maxBodyBytes + 1],
      [Setting.maxHeaderListSize, maxFields],
    );
    output.frame(FrameType.windowUpdate, 0, 0, receiveWindow - defaultWindow);
    output.flush();
  });
  socket.on("data", onChunk);
  socket.on("drain", settle);
  socket.on("end", () => socket.destroy());
  socket.on("error", (error) => {
    reason = socketErrorText(error);
  });
  socket.on("close", () => {
    state = "closed";
    clearTimeout(connectDeadline);
    clearTimeout(lingering);
    keepalive.stop();
    failAll();
    events.closed(connection, answered > 0, reason);
  });

  const connection: Connection = {
    usable: () => state === "connecting" || (state === "open" && !keepalive.isSuspect),
    connecting: () => state === "connecting",
    room: () =>
      state === "open" && !keepalive.isSuspect && !outbound.full()
        ? Math.min(concurrency.limit(), peerLimit) - streams.size
        : 0,
    send(pending) {
      const stream = outbound.send(pending);
      pending.streamId = stream.id;
      streams.set(stream.id, stream);
      if (++opened >= limits.maxStreams) state = "draining";
    },
    abandon({ streamId }) {
      const stream = streams.get(streamId);
      if (stream !== undefined) {
        output.frame(FrameType.rstStream, 0, streamId, Code.cancel);
        answers.forget(stream);
        remove(stream);
      }
      finish();
      keepalive.probe();
    },
    drain,
    destroy,
  };
  return connection;
}

/** The peer chooses the debug data of a GOAWAY. APNs puts its reason there. */
function goawayWords(code: number, data: Uint8Array | undefined): string {
  const text = Buffer.from(data ?? []).toString("latin1", 0, debugDataShown);
  return `GOAWAY with code ${code}${text === "" ? "" : ": "}${text.replace(/[^\x20-\x7e]/g, "?")}`;
}
