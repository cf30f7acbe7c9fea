import type { Writable } from "node:stream";
import { createFieldEncoder } from "./field-encoder.ts";
import type { FloodGuard } from "./peer-limits.ts";
import {
  Code,
  ConnectionError,
  defaultWindow,
  Flag,
  FrameType,
  frameHead,
  maxFrame,
  maxWindow,
  noHeaders,
  type PendingRequest,
  type Stream,
} from "./wire.ts";

const minBytes = 1_024;
/** Four TLS records. A larger write would only delay the first bytes. */
const maxBytes = 65_536;
/** Bytes that this side buffers for a peer that does not read, besides the bodies of its open streams. */
export const maxUnread = 1_048_576;

const emptyBuffer: Buffer = Buffer.alloc(0);

type Sink = Pick<Writable, "writable" | "writableLength" | "write">;

export type Output = ReturnType<typeof createOutput>;

/** Collects the frames of one turn of the event loop and hands them to the socket in one write, after `onFlush`. */
export function createOutput(socket: Sink, onFlush: () => void) {
  let bytes = emptyBuffer;
  let at = 0;
  let expected = minBytes;
  let scheduled = false;

  function flush(): void {
    if (at === 0) return;
    // The socket owns this memory from here on, so later frames go into a new buffer.
    const written = bytes.subarray(0, at);
    bytes = emptyBuffer;
    at = 0;
    if (!socket.writable) return;
    onFlush();
    socket.write(written);
  }

  function onTurn(): void {
    scheduled = false;
    expected = Math.max(minBytes, Math.min(maxBytes, at > expected / 4 ? expected : expected / 2));
    flush();
  }

  const output = {
    /** Reserves `size` bytes for one or more frames. The caller writes them at once, from `at` on, then calls `done`. */
    reserve(size: number): Buffer {
      if (at + size > bytes.length) {
        if (at > 0) {
          expected = Math.min(maxBytes, expected * 2);
          flush();
        }
        bytes = Buffer.allocUnsafe(Math.max(size, expected));
      }
      if (!scheduled) {
        scheduled = true;
        setImmediate(onTurn);
      }
      return bytes;
    },
    get at(): number {
      return at;
    },
    /** Marks the reserved bytes as written up to `end`. */
    done(end: number): void {
      at = end;
    },
    /** Writes a whole small frame; `numbers` are its payload, four bytes each. */
    frame(type: number, flags: number, streamId: number, ...numbers: number[]): void {
      const size = frameHead + numbers.length * 4;
      const target = output.reserve(size);
      let next = writeFrameHead(target, at, numbers.length * 4, type, flags, streamId);
      for (const number of numbers) next = target.writeUInt32BE(number >>> 0, next);
      at = next;
    },
    /** Writes SETTINGS from pairs of id and value. */
    settings(...settings: ReadonlyArray<readonly [number, number]>): void {
      const size = settings.length * 6;
      const target = output.reserve(frameHead + size);
      let next = writeFrameHead(target, at, size, FrameType.settings, 0, 0);
      for (const [id, value] of settings) next = target.writeUInt32BE(value, target.writeUInt16BE(id, next));
      at = next;
    },
    /** Answers a PING with its own eight bytes. */
    pong(payload: Uint8Array): void {
      const target = output.reserve(frameHead + payload.length);
      target.set(payload, writeFrameHead(target, at, payload.length, FrameType.ping, Flag.ack, 0));
      at += frameHead + payload.length;
    },
    raw(payload: Uint8Array): void {
      output.reserve(payload.length).set(payload, at);
      at += payload.length;
    },
    /** The peer reads so slowly that nothing more should be written. */
    congested: () => socket.writableLength + at > maxUnread,
    unread: () => socket.writableLength + at,
    flush,
  };
  return output;
}

/** Returns where the payload begins. */
export function writeFrameHead(
  bytes: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes[at + 5] = streamId >>> 24;
  bytes[at + 6] = streamId >>> 16;
  bytes[at + 7] = streamId >>> 8;
  bytes[at + 8] = streamId;
  return at + frameHead;
}

type Deps = {
  readonly output: Output;
  readonly guard: FloodGuard;
  /** The `:authority` of every request. */
  readonly authority: string;
  /** The open streams, in the order of their ids. */
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

  /** Writes HEADERS into the reserved bytes and returns where they end. */
  function writeHeaders(bytes: Buffer, at: number, { request }: PendingRequest, id: number, empty: boolean): number {
    const end = encoder.encode(bytes, at + frameHead, request);
    const flags = Flag.endHeaders | (empty ? Flag.endStream : 0);
    writeFrameHead(bytes, at, end - at - frameHead, FrameType.headers, flags, id);
    return end;
  }

  /** Writes a field block that needs more than one frame. */
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

  /** No body fits now. A request that starts anyway could not finish, and could not move to another connection. */
  const full = () => connectionWindow <= 0 || output.congested();

  /** Sends as much of a body as the windows and the socket allow: a peer may open its windows further than it reads. */
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
    /** The id of the newest stream; -1 before the first. */
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
    /** Drops the unsent rest of the stream's body. */
    forget(stream: Stream): void {
      if (stream.unsent !== undefined) blocked.delete(stream);
      stream.unsent = undefined;
    },
    /** Continues blocked bodies, oldest first. Call this when a window has grown or the socket has drained. */
    resume(): void {
      for (const stream of blocked) {
        if (full()) return;
        push(stream);
      }
    },
    /** Applies WINDOW_UPDATE. */
    widen(stream: Stream | undefined, by: number): void {
      if (stream === undefined) connectionWindow = widen(connectionWindow, by);
      else stream.window = widen(stream.window, by);
    },
    /** Applies SETTINGS_INITIAL_WINDOW_SIZE, which also changes the windows of open streams. */
    setInitialWindow(size: number): void {
      if (size > maxWindow) throw new ConnectionError(Code.flowControlError, "a window beyond 2^31");
      for (const stream of streams.values()) stream.window = widen(stream.window, size - initialWindow);
      initialWindow = size;
    },
    limitTable: encoder.limitTable,
  };
}
