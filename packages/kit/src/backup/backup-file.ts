import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, createGzip } from "node:zlib";
import { version } from "../version.ts";

/** What a backup begins with. `keys`: ids of the master keys that its secrets are encrypted with; the keys themselves stay outside. */
export type BackupHeader = {
  readonly herald: string;
  readonly part: string;
  readonly at: string;
  readonly keys: readonly string[];
};

/** A frame is its length in 4 bytes (little endian) and its bytes; an empty one ends the file, so that a torn file is noticed. */
const lengthBytes = 4;
/** Above the largest frame: a page of documents, or a chunk of a stream. */
const maxFrameBytes = 64 * 1_048_576;

const framed = async function* (header: BackupHeader, frames: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const frame = (bytes: Uint8Array) => {
    const length = Buffer.allocUnsafe(lengthBytes);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  yield frame(Buffer.from(JSON.stringify(header)));
  for await (const bytes of frames) yield frame(bytes);
  yield frame(Buffer.alloc(0));
};

/** Writes a backup: its header and frames that are not empty, compressed. */
export const writeBackup = (out: Writable, header: BackupHeader, frames: AsyncIterable<Uint8Array>): Promise<void> =>
  pipeline(framed(header, frames), createGzip({ level: constants.Z_BEST_SPEED }), out, { end: false });

const torn = () => new Error("the file is torn: it ends before the backup does");
const unreadable = () => new Error("the file is not a backup of Herald");

const readFrames = async function* (input: Readable): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of input.pipe(createGunzip()) as AsyncIterable<Buffer>) {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    while (held.length >= lengthBytes) {
      const length = held.readUInt32LE();
      if (length === 0) return;
      if (length > maxFrameBytes) throw unreadable();
      if (held.length < lengthBytes + length) break;
      yield held.subarray(lengthBytes, lengthBytes + length);
      held = held.subarray(lengthBytes + length);
    }
  }
  throw torn();
};

const isNewer = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((text) => text.split(/[.-]/).map(Number));
  for (let at = 0; at < 3; at++) if (a?.[at] !== b?.[at]) return (a?.[at] ?? 0) > (b?.[at] ?? 0);
  return false;
};

/**
 * Reads the header of a part's backup, and its frames.
 * @throws Error in words for people: not a backup, another part's, of a newer Herald, or torn.
 */
export const readBackup = async (
  input: Readable,
  part: string,
): Promise<{ readonly header: BackupHeader; readonly frames: AsyncGenerator<Buffer> }> => {
  const frames = readFrames(input);
  const first = await frames.next().catch((error: NodeJS.ErrnoException) => {
    throw error.code?.startsWith("Z_") ? unreadable() : error;
  });
  const header = headerOf(first.value);
  if (header.part !== part) throw new Error(`this is a backup of ${header.part}, not of ${part}`);
  if (isNewer(header.herald, version))
    throw new Error(
      `Herald ${header.herald} made this backup; this is ${version}, which may not read it: upgrade first`,
    );
  return { header, frames };
};

const headerOf = (frame: Buffer | undefined): BackupHeader => {
  try {
    const { herald, part, at, keys } = JSON.parse(frame?.toString() ?? "");
    if (typeof herald === "string" && typeof part === "string" && Array.isArray(keys))
      return { herald, part, at, keys };
  } catch {
    // Said below.
  }
  throw unreadable();
};
