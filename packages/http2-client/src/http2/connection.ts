import { socketErrorText } from "@herald/kit";
import { connectTls, type TlsTickets } from "../tls-socket.ts";
import type { TransportAnswer, TransportLimits, TransportOptions } from "../transport.ts";
import { createAnswers } from "./answers.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { createFloodGuard } from "./flood-guard.ts";
import { createInbound, maxFields } from "./inbound.ts";
import { createKeepalive } from "./keepalive.ts";
import { createOutbound } from "./outbound.ts";
import { createOutput, maxUnread } from "./output.ts";
import type { PendingRequest, Stream } from "./stream.ts";
import { Code, ConnectionError, connectionPreface, defaultWindow, Flag, FrameType, Setting } from "./wire.ts";

/** What the peer may send before it hears that some was read: much more than a turn of the event loop brings. */
const receiveWindow = 1_048_576;

export type ConnectionEvents = {
  /** A place for a request may be free, or the connection takes none any more. */
  changed(): void;
  finished(pending: PendingRequest, answer: TransportAnswer): void;
  /** The socket is gone. `served`: it answered at least one request; else the attempt was in vain. */
  closed(connection: Connection, served: boolean, reason: string): void;
};

/** One HTTP/2 connection over TLS, from its first packet to its last. */
export type Connection = {
  /** Takes new requests, or will once it is connected and known to be alive. */
  usable(): boolean;
  connecting(): boolean;
  /** How many more requests may be written now. */
  room(): number;
  /** Writes the request, which the pool has checked, and sets its `streamId`. */
  send(pending: PendingRequest): void;
  /** The caller no longer waits for that answer: cancels the stream and pings the peer. */
  abandon(pending: PendingRequest): void;
  /** No new requests; closes once the last answer is here. */
  drain(): void;
  destroy(reason: string): void;
};

const debugDataShown = 120;

/**
 * A connection whose frames are read and written here: per request it costs a fraction of `node:http2`.
 * Requests are written only after the peer's SETTINGS: until then it may allow one stream, as APNs does.
 */
export function openConnection(
  options: TransportOptions,
  limits: TransportLimits,
  events: ConnectionEvents,
  tickets: TlsTickets,
): Connection {
  const streams = new Map<number, Stream>();
  const concurrency = createConcurrencyLimit(limits.maxInFlight);
  const guard = createFloodGuard();
  let state: "connecting" | "open" | "draining" | "closed" = "connecting";
  let saidGoodbye = false;
  /** What comes from the peer does not matter any more. */
  let deaf = false;
  let lingering: NodeJS.Timeout | undefined;
  let peerLimit = Number.POSITIVE_INFINITY;
  let lastProcessed = Number.POSITIVE_INFINITY;
  /** The newest stream of which the socket was given anything. */
  let written = 0;
  let opened = 0;
  let answered = 0;
  let lastUsed = performance.now();
  let reason = "the peer closed the connection";

  const socket = connectTls(options, tickets);
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

  /** The stream is over, with this for its request. */
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

  /** Not processed: never written, above the last stream of a GOAWAY, or refused. A peer that began to answer has acted. */
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
        // A peer that leaves in anger may still answer what it had begun, but not for long.
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
      // What a peer sends must not end the process, so a mistake of our own ends the connection, and its reason tells.
      leave(error instanceof ConnectionError ? error : new ConnectionError(Code.internalError, `this side: ${error}`));
      return;
    }
    settle();
  }

  /** After everything that may have made room or ended a stream. */
  function settle(): void {
    outbound.resume();
    finish();
    events.changed();
  }

  /** The peer cannot be understood any more: what it might have acted on stays unknown. */
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

  /** Closes once nothing is under way. */
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

  /** A peer that does not end its side of the socket is not waited for. */
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
    idleSince: () => (streams.size === 0 ? lastUsed : undefined),
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
    // A stream's window holds the longest answer that is wanted, so it never has to be widened.
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
    usable: () => state === "connecting" || (state === "open" && !keepalive.isSuspect()),
    connecting: () => state === "connecting",
    room: () =>
      state === "open" && !keepalive.isSuspect() && !outbound.full()
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

/** Debug data of a GOAWAY is the peer's to choose: APNs puts its reason there. */
function goawayWords(code: number, data: Uint8Array | undefined): string {
  const text = Buffer.from(data ?? []).toString("latin1", 0, debugDataShown);
  return `GOAWAY with code ${code}${text === "" ? "" : ": "}${text.replace(/[^\x20-\x7e]/g, "?")}`;
}
