import { createFieldDecoder, type FieldList } from "./field-decoder.ts";
import type { FloodGuard } from "./peer-limits.ts";
import { Code, ConnectionError, Flag, FrameType, frameHead, maxFrame, maxFrameAllowed, Setting } from "./wire.ts";

/** The payload is `bytes` from `start` to `end`. Read or copy it at once, because the memory is reused. */
export type OnFrame = (
  type: number,
  flags: number,
  streamId: number,
  bytes: Buffer,
  start: number,
  end: number,
) => void;

/** Splits the socket's bytes into frames. It keeps a copy of an incomplete frame, 16 KiB at most. */
export function createFrameReader(onFrame: OnFrame): (chunk: Buffer) => void {
  let partial: Buffer = Buffer.alloc(0);
  let partialLength = 0;

  function hold(chunk: Buffer, from: number, to: number): void {
    if (partial.length === 0) partial = Buffer.allocUnsafeSlow(frameHead + maxFrame);
    chunk.copy(partial, partialLength, from, to);
    partialLength += to - from;
  }

  /** Completes the kept frame from the chunk and passes it to `onFrame`. Returns where the rest of the chunk begins. */
  function complete(chunk: Buffer): number {
    let at = 0;
    if (partialLength < frameHead) {
      at = Math.min(frameHead - partialLength, chunk.length);
      hold(chunk, 0, at);
      if (partialLength < frameHead) return at;
    }
    const missing = frameHead + lengthAt(partial, 0) - partialLength;
    const until = Math.min(at + missing, chunk.length);
    hold(chunk, at, until);
    if (until - at < missing) return until;
    const end = partialLength;
    partialLength = 0;
    pass(partial, 0, end);
    return until;
  }

  function pass(bytes: Buffer, at: number, end: number): void {
    const streamId =
      ((bytes[at + 5] as number) & 0x7f) * 0x1000000 +
      (((bytes[at + 6] as number) << 16) | ((bytes[at + 7] as number) << 8) | (bytes[at + 8] as number));
    onFrame(bytes[at + 3] as number, bytes[at + 4] as number, streamId, bytes, at + frameHead, end);
  }

  return (chunk) => {
    let at = partialLength > 0 ? complete(chunk) : 0;
    while (chunk.length - at >= frameHead) {
      const end = at + frameHead + lengthAt(chunk, at);
      if (end > chunk.length) break;
      pass(chunk, at, end);
      at = end;
    }
    if (at < chunk.length) hold(chunk, at, chunk.length);
  };
}

function lengthAt(bytes: Buffer, at: number): number {
  const length = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
  if (length > maxFrame) throw new ConnectionError(Code.frameSizeError, `a frame of ${length} bytes`);
  return length;
}

/** The peer's frames as events. Each frame is valid at this moment; the receiver only has to act on it. */
export type InboundEvents = {
  /** One value of SETTINGS, also with an unknown id. */
  setting(id: number, value: number): void;
  settingsRead(): void;
  pinged(bytes: Uint8Array): void;
  pingAnswered(): void;
  wentAway(lastStreamId: number, code: number, debugData: Buffer): void;
  /** WINDOW_UPDATE; stream 0 is the connection. */
  widened(streamId: number, by: number): void;
  reset(streamId: number, code: number): void;
  /** Headers or trailers. The next block reuses the list. */
  fields(streamId: number, fields: FieldList, ends: boolean): void;
  /** The frame used `windowBytes` of the connection's window. The body, without padding, is `bytes` from `start` to `end`. */
  data(streamId: number, windowBytes: number, bytes: Buffer, start: number, end: number, ends: boolean): void;
  /** A protocol error that concerns one stream only. */
  streamBroken(streamId: number, code: number, problem: string): void;
  /** Whether this connection ever opened the stream. */
  wasOpened(streamId: number): boolean;
};

/** Decoded size. A provider's answer has a few hundred bytes. */
export const maxFields = 65_536;
const maxBlock = 65_536;

/** Reads the peer's bytes in chunks of any size. Throws a ConnectionError when the peer breaks RFC 9113. */
export function createInbound(events: InboundEvents, guard: FloodGuard): (chunk: Buffer) => void {
  const decoder = createFieldDecoder(maxFields);
  let begun = false;
  /** A field block without END_HEADERS yet: only its CONTINUATION may follow. */
  let open: { streamId: number; ends: boolean; parts: Buffer[]; size: number } | undefined;

  return createFrameReader((type, flags, streamId, bytes, start, end) => {
    if (!begun) {
      if (type !== FrameType.settings || flags & Flag.ack) throw wrong("its first frame is not SETTINGS");
      begun = true;
    }
    if (open !== undefined) return onContinuation(open, type, flags, streamId, bytes, start, end);
    switch (type) {
      case FrameType.data:
        return onData(flags, streamId, bytes, start, end);
      case FrameType.headers:
        return onHeaders(flags, streamId, bytes, start, end);
      case FrameType.priority:
        guard.nuisance();
        if (streamId === 0) throw wrong("PRIORITY without a stream");
        if (end - start !== 5) events.streamBroken(streamId, Code.frameSizeError, "PRIORITY of a wrong size");
        return;
      case FrameType.rstStream:
        if (end - start !== 4) throw wrongSize("RST_STREAM");
        assertOpened(streamId, "RST_STREAM");
        return events.reset(streamId, bytes.readUInt32BE(start));
      case FrameType.settings:
        return onSettings(flags, streamId, bytes, start, end);
      case FrameType.pushPromise:
        throw wrong("PUSH_PROMISE, which was not allowed");
      case FrameType.ping:
        guard.nuisance();
        if (streamId !== 0) throw wrong("PING on a stream");
        if (end - start !== 8) throw wrongSize("PING");
        return flags & Flag.ack ? events.pingAnswered() : events.pinged(bytes.subarray(start, end));
      case FrameType.goaway:
        guard.nuisance();
        if (streamId !== 0) throw wrong("GOAWAY on a stream");
        if (end - start < 8) throw wrongSize("GOAWAY");
        return events.wentAway(
          bytes.readUInt32BE(start) & 0x7fffffff,
          bytes.readUInt32BE(start + 4),
          bytes.subarray(start + 8, end),
        );
      case FrameType.windowUpdate:
        return onWindowUpdate(streamId, bytes, start, end);
      case FrameType.continuation:
        throw wrong("CONTINUATION of nothing");
      default:
        guard.nuisance();
    }
  });

  function assertOpened(streamId: number, what: string): void {
    if (!events.wasOpened(streamId)) throw wrong(`${what} for a stream that was never opened`);
  }

  function onData(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    assertOpened(streamId, "DATA");
    const ends = (flags & Flag.endStream) !== 0;
    const from = flags & Flag.padded ? start + 1 : start;
    const to = flags & Flag.padded ? end - padding(bytes, start, end) : end;
    if (from > to) throw wrong("more padding than frame");
    if (from === to && !ends) guard.nuisance();
    events.data(streamId, end - start, bytes, from, to, ends);
  }

  function onHeaders(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    assertOpened(streamId, "HEADERS");
    const ends = (flags & Flag.endStream) !== 0;
    let from = flags & Flag.padded ? start + 1 : start;
    const to = flags & Flag.padded ? end - padding(bytes, start, end) : end;
    if (flags & Flag.priority) from += 5;
    if (from > to) throw wrong("more padding than frame");
    if (flags & Flag.endHeaders) events.fields(streamId, decoder.decode(bytes, from, to), ends);
    else open = { streamId, ends, parts: [Buffer.from(bytes.subarray(from, to))], size: to - from };
  }

  function onContinuation(
    block: NonNullable<typeof open>,
    type: number,
    flags: number,
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (type !== FrameType.continuation || streamId !== block.streamId) throw wrong("another frame inside its headers");
    guard.nuisance();
    block.size += end - start;
    if (block.size > maxBlock) throw new ConnectionError(Code.enhanceYourCalm, "the peer's headers do not end");
    block.parts.push(Buffer.from(bytes.subarray(start, end)));
    if (!(flags & Flag.endHeaders)) return;
    open = undefined;
    const whole = Buffer.concat(block.parts, block.size);
    events.fields(streamId, decoder.decode(whole, 0, whole.length), block.ends);
  }

  function onSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    guard.nuisance();
    if (streamId !== 0) throw wrong("SETTINGS on a stream");
    const size = end - start;
    if (flags & Flag.ack) {
      if (size > 0) throw wrongSize("SETTINGS");
      return;
    }
    if (size % 6 !== 0) throw wrongSize("SETTINGS");
    for (let at = start; at < end; at += 6) {
      // One frame holds thousands of settings, and a new initial window touches every open stream.
      if (at > start) guard.nuisance();
      const [id, value] = [bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2)];
      if (id === Setting.enablePush && value !== 0) throw wrong("a server that wants to be pushed to");
      if (id === Setting.maxFrameSize && (value < 16_384 || value > maxFrameAllowed))
        throw wrong("a MAX_FRAME_SIZE out of range");
      events.setting(id, value);
    }
    events.settingsRead();
  }

  function onWindowUpdate(streamId: number, bytes: Buffer, start: number, end: number): void {
    guard.nuisance();
    if (end - start !== 4) throw wrongSize("WINDOW_UPDATE");
    if (streamId !== 0) assertOpened(streamId, "WINDOW_UPDATE");
    const by = bytes.readUInt32BE(start) & 0x7fffffff;
    if (by > 0) events.widened(streamId, by);
    else if (streamId === 0) throw wrong("WINDOW_UPDATE by nothing");
    else events.streamBroken(streamId, Code.protocolError, "WINDOW_UPDATE by nothing");
  }
}

function padding(bytes: Buffer, start: number, end: number): number {
  if (start === end) throw wrongSize("a padded frame");
  return bytes[start] as number;
}

const wrong = (what: string) => new ConnectionError(Code.protocolError, `the peer broke HTTP/2: ${what}`);
const wrongSize = (what: string) =>
  new ConnectionError(Code.frameSizeError, `the peer broke HTTP/2: ${what} of a wrong size`);
