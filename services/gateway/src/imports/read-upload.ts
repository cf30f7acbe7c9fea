import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { HeraldError } from "@herald/kit";

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

/** A sender that pauses longer than this is gone. */
const maxPauseMs = 60_000;

const broken = (message: string) =>
  new HeraldError(
    "malformed-request",
    `body: ${message}; GET the import for \`lines_stored\` and continue after that line`,
    {
      headers: { connection: "close" },
    },
  );

/** Chunks of a request's body, one at a time: a slow reader slows down the sender. */
async function* chunksOf(request: Readable): AsyncGenerator<Buffer> {
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const pause = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(broken(`nothing arrived for ${maxPauseMs / 1_000} s`)), maxPauseMs);
      });
      const next = await Promise.race([chunks.next(), pause]).finally(() => clearTimeout(timer));
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    if (error instanceof HeraldError) throw error;
    throw broken("the connection broke before its end");
  }
}

/** The file of a request, decompressed where it is gzip, by its first bytes or its header. @throws HeraldError `malformed-request`. */
export async function* readUpload(request: IncomingMessage): AsyncGenerator<Buffer> {
  const chunks = chunksOf(request);
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
  // Its callback gets the reason; the iteration below may only see that the stream ended early.
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
