import type { Writable } from "node:stream";
import { Flag, FrameType, frameHead } from "./wire.ts";

const minBytes = 1_024;
/** Four TLS records: more at once would only keep the peer waiting. */
const maxBytes = 65_536;
/** What a peer that does not read may make this side keep, besides the bodies of its open streams. */
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
    // The memory is the socket's from here on, so what is written next goes elsewhere.
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
    /** Makes room for a frame or several of at most so many bytes, which must be written at once: see `at` and `done`. */
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
    /** What was reserved has been written up to here. */
    done(end: number): void {
      at = end;
    },
    /** A whole small frame; `numbers` are its payload, four bytes each. */
    frame(type: number, flags: number, streamId: number, ...numbers: number[]): void {
      const size = frameHead + numbers.length * 4;
      const target = output.reserve(size);
      let next = writeFrameHead(target, at, numbers.length * 4, type, flags, streamId);
      for (const number of numbers) next = target.writeUInt32BE(number >>> 0, next);
      at = next;
    },
    /** Pairs of a setting and its value. */
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
    /** The peer reads too slowly for more to be given to it. */
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
