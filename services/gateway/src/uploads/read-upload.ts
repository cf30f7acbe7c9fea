import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { lineLimits } from "@herald/contracts";
import { type FileLine, HeraldError } from "@herald/kit";
import { createSpeedLimit, minBytesPerSecond } from "../limits/speed-limit.ts";
import type { UploadWatch } from "./watch-upload.ts";

const kinds: ReadonlyMap<string, "lines" | "csv"> = new Map([
  ["application/x-ndjson", "lines"],
  ["application/ndjson", "lines"],
  ["application/jsonl", "lines"],
  ["application/json", "lines"],
  ["text/plain", "lines"],
  ["text/csv", "csv"],
]);

export const uploadTypes = ["application/x-ndjson", "text/csv", "text/plain"] as const;

/** Whether the file is CSV. @throws HeraldError `unsupported-media-type`. */
export const isCsvUpload = ({ headers }: IncomingMessage): boolean => {
  const [media = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const kind = kinds.get(media.trim());
  const charset = parameters.find((parameter) => parameter.trim().startsWith("charset="))?.split("=")[1];
  if (kind === undefined || (charset !== undefined && !/^\s*"?utf-?8"?\s*$/.test(charset)))
    throw new HeraldError(
      "unsupported-media-type",
      "content-type: must be application/x-ndjson, text/csv, or text/plain for one token a line, in UTF-8",
    );
  const coding = headers["content-encoding"] ?? "identity";
  if (coding !== "identity" && coding !== "gzip")
    throw new HeraldError("unsupported-media-type", "content-encoding: must be gzip or none");
  return kind === "csv";
};

/** Memory that others need is held for as long as it takes to send as many bytes, at most this long. */
const maxHeldSeconds = 1_024;

const broken = (message: string) =>
  new HeraldError(
    "malformed-request",
    `body: ${message}; GET the import for \`lines_stored\` and continue after that line`,
    {
      headers: { connection: "close" },
    },
  );

/** Chunks of a request's body, one at a time: a slow reader slows down the sender. */
async function* chunksOf(request: Readable, { orEnded, heldBytes }: UploadWatch): AsyncGenerator<Buffer> {
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const least = () => Math.max(minBytesPerSecond, Math.ceil(heldBytes() / maxHeldSeconds));
  const speed = createSpeedLimit(() => broken(`less than ${least()} bytes per second arrived for a minute`), least);
  try {
    for (;;) {
      const next = await speed.wait(orEnded(chunks.next()), ({ value, done }) => (done ? 0 : value.length));
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    if (error instanceof HeraldError) throw error;
    throw broken("the connection broke before its end");
  }
}

/** The file of a request, decompressed if its first bytes or its header say gzip. @throws HeraldError `malformed-request`. */
export async function* readUpload(request: IncomingMessage, watch: UploadWatch): AsyncGenerator<Buffer> {
  const chunks = chunksOf(request, watch);
  const first = await chunks.next();
  if (first.done) return;
  const source = async function* () {
    yield first.value;
    yield* chunks;
  };
  const isGzip = first.value[0] === 0x1f && (first.value.length < 2 || first.value[1] === 0x8b);
  if (!isGzip) {
    if (request.headers["content-encoding"] === "gzip") throw broken("is not gzip, as content-encoding says");
    yield* source();
    return;
  }
  let failure: unknown;
  // The callback gets the reason; the loop below may only see that the stream ended early.
  const decoded = pipeline(source, createGunzip(), (error) => {
    failure = error ?? undefined;
  }) as unknown as AsyncIterable<Buffer>;
  try {
    for await (const chunk of decoded) yield chunk;
  } catch (error) {
    const cause = failure ?? error;
    throw cause instanceof HeraldError ? cause : broken("the gzip data is damaged, or ends in the middle");
  }
}

const [newline, quote, carriageReturn] = Buffer.from('\n"\r') as unknown as [number, number, number];
/** A line costs as much time as this many bytes more. */
const bytesPerLine = 64;
const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

const isUtf16 = (first: Buffer): boolean =>
  (first[0] === 0xff && first[1] === 0xfe) || (first[0] === 0xfe && first[1] === 0xff);

const hasOddQuotes = (bytes: Buffer): boolean => {
  let odd = false;
  for (let at = bytes.indexOf(quote); at >= 0; at = bytes.indexOf(quote, at + 1)) odd = !odd;
  return odd;
};

const lineOf = (bytes: Buffer): FileLine => {
  const end = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length;
  const line = bytes.subarray(0, end);
  return isUtf8(line) ? { text: line.toString() } : { problem: "not-utf8" };
};

/**
 * Splits a file into lines and holds at most one of them. With `quoted` a line is a row of CSV, whose quoted cells may contain line breaks.
 * A last line without a line break counts too. `spend` gets the cost of each piece in bytes, and its promise delays the next piece.
 * @throws HeraldError `unsupported-media-type` for UTF-16, `body-too-large` for a file with mostly blank or too long lines.
 */
export async function* splitLines(
  source: AsyncIterable<Buffer>,
  quoted: boolean,
  spend: (bytes: number) => Promise<void>,
): AsyncGenerator<FileLine[]> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let junk = 0;
  let isOpen = false;
  let isSkipping = false;
  let isFirst = true;

  const waste = (wasted: number) => {
    junk += wasted;
    if (junk > lineLimits.junkBytes)
      throw new HeraldError(
        "body-too-large",
        `body: more than ${lineLimits.junkBytes} bytes of it are blank lines, or lines longer than ${lineLimits.bytes} bytes`,
      );
  };
  const take = (): FileLine => {
    const whole = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes);
    parts = [];
    bytes = 0;
    return lineOf(whole);
  };
  const add = (part: Buffer): void => {
    if (isSkipping) {
      waste(part.length);
      return;
    }
    parts.push(part);
    bytes += part.length;
    if (bytes <= lineLimits.bytes) return;
    waste(bytes);
    parts = [];
    bytes = 0;
    isSkipping = true;
    isOpen = false;
  };

  for await (const given of source) {
    let chunk = given;
    if (isFirst && chunk.length > 0) {
      isFirst = false;
      if (isUtf16(chunk)) throw new HeraldError("unsupported-media-type", "body: must be UTF-8; this is UTF-16");
      if (chunk.subarray(0, 3).equals(utf8Mark)) chunk = chunk.subarray(3);
    }
    const lines: FileLine[] = [];
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(newline, start);
      const end = found < 0 ? chunk.length : found;
      const segment = chunk.subarray(start, end);
      if (quoted && !isSkipping && hasOddQuotes(segment)) isOpen = !isOpen;
      const goesOn = found < 0 || isOpen;
      add(goesOn && found >= 0 ? chunk.subarray(start, end + 1) : segment);
      start = end + 1;
      if (found < 0 || isOpen) continue;
      if (isSkipping) {
        isSkipping = false;
        lines.push({ problem: "too-long" });
        continue;
      }
      if (bytes <= 1) waste(bytesPerLine);
      lines.push(take());
    }
    await spend(chunk.length + bytesPerLine * lines.length);
    if (lines.length > 0) yield lines;
  }
  if (isSkipping) yield [{ problem: "too-long" }];
  else if (bytes > 0) yield [take()];
}
