import { noHeaders } from "./answer-fields.ts";
import { createFieldEncoder } from "./field-encoder.ts";
import type { FloodGuard } from "./flood-guard.ts";
import { type Output, writeFrameHead } from "./output.ts";
import type { PendingRequest, Stream } from "./stream.ts";
import { Code, ConnectionError, defaultWindow, Flag, FrameType, frameHead, maxFrame, maxWindow } from "./wire.ts";

type Deps = {
  readonly output: Output;
  readonly guard: FloodGuard;
  /** The `:authority` of every request. */
  readonly authority: string;
  /** The streams that are open, in the order of their ids. */
  readonly streams: ReadonlyMap<number, Stream>;
};

const maxUtf8 = 3; // bytes of one UTF-16 unit

/** Writes requests, as fast as the peer's windows let it. */
export function createOutbound({ output, guard, authority, streams }: Deps) {
  const encoder = createFieldEncoder(authority);
  const blocked = new Set<Stream>();
  let newest = -1;
  let connectionWindow = defaultWindow;
  let initialWindow = defaultWindow;

  /** Puts HEADERS into the bytes that were reserved; returns where they end. */
  function writeHeaders(bytes: Buffer, at: number, { request }: PendingRequest, id: number, empty: boolean): number {
    const end = encoder.encode(bytes, at + frameHead, request);
    const flags = Flag.endHeaders | (empty ? Flag.endStream : 0);
    writeFrameHead(bytes, at, end - at - frameHead, FrameType.headers, flags, id);
    return end;
  }

  /** A field block of more than one frame. */
  function writeLongHeaders({ request }: PendingRequest, id: number, most: number, empty: boolean): void {
    const block = Buffer.allocUnsafe(most);
    const length = encoder.encode(block, 0, request);
    for (let at = 0; at < length; at += maxFrame) {
      const part = block.subarray(at, Math.min(at + maxFrame, length));
      const type = at === 0 ? FrameType.headers : FrameType.continuation;
      const ends = at + maxFrame >= length ? Flag.endHeaders : 0;
      const flags = ends | (at === 0 && empty ? Flag.endStream : 0);
      writeFrame(type, flags, id, part);
    }
  }

  function writeFrame(type: number, flags: number, id: number, payload: Buffer): void {
    const bytes = output.reserve(frameHead + payload.length);
    const start = writeFrameHead(bytes, output.at, payload.length, type, flags, id);
    payload.copy(bytes, start);
    output.done(start + payload.length);
  }

  /** Nothing more fits at the moment: what is begun now could neither be finished nor go elsewhere. */
  const full = () => connectionWindow <= 0 || output.congested();

  /** Sends of a body what the windows and the socket hold: a peer may widen its windows by more than it reads. */
  function push(stream: Stream): void {
    for (let rest = stream.unsent; rest !== undefined; ) {
      const size = Math.min(rest.length, maxFrame, connectionWindow, stream.window);
      if (size <= 0 || output.congested()) {
        blocked.add(stream);
        return;
      }
      const last = size === rest.length;
      writeFrame(FrameType.data, last ? Flag.endStream : 0, stream.id, rest.subarray(0, size));
      took(stream, size);
      rest = last ? undefined : rest.subarray(size);
      stream.unsent = rest;
    }
    blocked.delete(stream);
  }

  function took(stream: Stream, size: number): void {
    connectionWindow -= size;
    stream.window -= size;
    guard.earn(size);
  }

  function widen(window: number, by: number): number {
    if (window + by > maxWindow) throw new ConnectionError(Code.flowControlError, "a window beyond 2^31");
    return window + by;
  }

  return {
    /** The id of the last stream that was opened; -1 when there is none. */
    newest: () => newest,
    full,
    send(pending: PendingRequest): Stream {
      const { request } = pending;
      const { body } = request;
      const id = newest + 2;
      newest = id;
      const stream: Stream = {
        id,
        pending,
        window: initialWindow,
        unsent: undefined,
        status: 0,
        headers: noHeaders,
        contentLength: -1,
        received: 0,
        chunks: undefined,
      };
      const empty = body.length === 0;
      const most = encoder.most(request);
      if (most > maxFrame) {
        writeLongHeaders(pending, id, most, empty);
      } else {
        const bodyMost = typeof body === "string" ? body.length * maxUtf8 : body.length;
        const inline = bodyMost > maxFrame ? 0 : bodyMost;
        const bytes = output.reserve(frameHead + most + frameHead + inline);
        const headersEnd = writeHeaders(bytes, output.at, pending, id, empty);
        if (inline > 0) {
          const start = headersEnd + frameHead;
          let size = body.length;
          if (typeof body === "string") size = bytes.write(body, start);
          else bytes.set(body, start);
          if (size <= connectionWindow && size <= stream.window) {
            writeFrameHead(bytes, headersEnd, size, FrameType.data, Flag.endStream, id);
            output.done(start + size);
            took(stream, size);
            return stream;
          }
        }
        output.done(headersEnd);
      }
      if (!empty) {
        stream.unsent =
          typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length);
        push(stream);
      } else guard.earn(0);
      return stream;
    },
    /** Its body is not wanted any more. */
    forget(stream: Stream): void {
      if (stream.unsent !== undefined) blocked.delete(stream);
      stream.unsent = undefined;
    },
    /** Goes on with the bodies that wait, oldest first. To be called when windows have grown or the socket has drained. */
    resume(): void {
      for (const stream of blocked) {
        if (full()) return;
        push(stream);
      }
    },
    /** WINDOW_UPDATE. */
    widen(stream: Stream | undefined, by: number): void {
      if (stream === undefined) connectionWindow = widen(connectionWindow, by);
      else stream.window = widen(stream.window, by);
    },
    /** SETTINGS_INITIAL_WINDOW_SIZE, which holds for streams that are open too. */
    setInitialWindow(size: number): void {
      if (size > maxWindow) throw new ConnectionError(Code.flowControlError, "a window beyond 2^31");
      for (const stream of streams.values()) stream.window = widen(stream.window, size - initialWindow);
      initialWindow = size;
    },
    limitTable: encoder.limitTable,
  };
}
