import { Code, ConnectionError, frameHead, maxFrame } from "./wire.ts";

/** The payload is `bytes` from `start` to `end`, to be read or copied at once: the memory is used again. */
export type OnFrame = (
  type: number,
  flags: number,
  streamId: number,
  bytes: Buffer,
  start: number,
  end: number,
) => void;

/** Cuts what the socket brings into frames. Of a frame that is not whole yet it holds a copy, 16 KiB at most. */
export function createFrameReader(onFrame: OnFrame): (chunk: Buffer) => void {
  let held: Buffer = Buffer.alloc(0);
  let heldLength = 0;

  function hold(chunk: Buffer, from: number, to: number): void {
    if (held.length === 0) held = Buffer.allocUnsafeSlow(frameHead + maxFrame);
    chunk.copy(held, heldLength, from, to);
    heldLength += to - from;
  }

  /** Fills what is held up to one whole frame and passes it on. Returns where the rest of the chunk begins. */
  function complete(chunk: Buffer): number {
    let at = 0;
    if (heldLength < frameHead) {
      at = Math.min(frameHead - heldLength, chunk.length);
      hold(chunk, 0, at);
      if (heldLength < frameHead) return at;
    }
    const missing = frameHead + lengthAt(held, 0) - heldLength;
    const until = Math.min(at + missing, chunk.length);
    hold(chunk, at, until);
    if (until - at < missing) return until;
    const end = heldLength;
    heldLength = 0;
    pass(held, 0, end);
    return until;
  }

  function pass(bytes: Buffer, at: number, end: number): void {
    const streamId =
      ((bytes[at + 5] as number) & 0x7f) * 0x1000000 +
      (((bytes[at + 6] as number) << 16) | ((bytes[at + 7] as number) << 8) | (bytes[at + 8] as number));
    onFrame(bytes[at + 3] as number, bytes[at + 4] as number, streamId, bytes, at + frameHead, end);
  }

  return (chunk) => {
    let at = heldLength > 0 ? complete(chunk) : 0;
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
