/** HTTP/2 frames as bytes, for a test server that sends frames that no library would. */

export { Code, connectionPreface, Flag, FrameType, Setting } from "../src/http2/wire.ts";

export type Frame = { type: number; flags: number; streamId: number; payload: Buffer };

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeUInt32BE(value >>> 0, index * 4);
  });
  return bytes;
}

export function settingsPayload(settings: ReadonlyArray<readonly [number, number]>): Buffer {
  const bytes = Buffer.alloc(settings.length * 6);
  settings.forEach(([id, value], index) => {
    bytes.writeUInt16BE(id, index * 6);
    bytes.writeUInt32BE(value, index * 6 + 2);
  });
  return bytes;
}

/** HPACK without compression: every field literal, never indexed, no Huffman. */
export function fieldBlock(fields: ReadonlyArray<readonly [string, string | Buffer]>): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0x10), text(name), text(value)]));
}

function text(value: string | Buffer): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value, "latin1") : value;
  return Buffer.concat([prefixedInteger(bytes.length), bytes]);
}

function prefixedInteger(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** Reads the whole frames at the start of `buffer` and returns the rest. */
export function takeFrames(buffer: Buffer, onFrame: (frame: Frame) => void): Buffer {
  let at = 0;
  while (buffer.length - at >= 9) {
    const length = buffer.readUIntBE(at, 3);
    if (buffer.length - at < 9 + length) break;
    onFrame({
      type: buffer[at + 3] ?? 0,
      flags: buffer[at + 4] ?? 0,
      streamId: buffer.readUInt32BE(at + 5) & 0x7fffffff,
      payload: buffer.subarray(at + 9, at + 9 + length),
    });
    at += 9 + length;
  }
  return buffer.subarray(at);
}
