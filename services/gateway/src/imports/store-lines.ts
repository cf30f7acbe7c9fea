import { setTimeout as sleep } from "node:timers/promises";
import { type ImportChunkV1, type ImportId, importLimits, type ProjectId } from "@herald/contracts";
import { csvDelimiter, csvRow, HeraldError, hasCode } from "@herald/kit";
import type { FileLine } from "./read-upload.ts";

/** Encodes a chunk once. Each call of the result tries to publish the chunk, and resolves when the stream has stored it. */
export type PrepareChunk = (chunk: ImportChunkV1) => () => Promise<unknown>;

/** Between tries while the import's share is full. Each try sends the whole chunk, and the stored ones keep registry busy for longer. */
const fullRetryMs = 250;

type Options = {
  readonly projectId: ProjectId;
  readonly importId: ImportId;
  readonly isCsv: boolean;
  readonly afterLine: number;
  readonly prepare: PrepareChunk;
  readonly now: () => Date;
  /** Whether the sender has disconnected. */
  readonly isGone: () => boolean;
};

/**
 * Stores the lines of a file in chunks, one after another: a full stream slows down the sender. Chunk borders do not depend on the upload,
 * so an upload that continues after stored lines repeats and skips none.
 * @throws HeraldError `bus-unavailable`, `validation-failed` for an unreadable header or too many lines.
 */
export const storeLines = async (
  files: AsyncIterable<readonly FileLine[]>,
  { projectId, importId, isCsv, afterLine, prepare, now, isGone }: Options,
): Promise<void> => {
  let header: string | undefined;
  let line = 0;
  let chunk = { firstLine: afterLine + 1, lines: 0, bytes: 0, content: [] as ImportChunkV1["content"] };

  const flush = async (last: boolean): Promise<void> => {
    const { firstLine, lines, content } = chunk;
    const whole = { projectId, importId, firstLine, lines, last, at: now().toISOString(), content };
    const publish = prepare(header === undefined ? whole : { ...whole, header });
    for (;;) {
      try {
        await publish();
        break;
      } catch (error) {
        if (!hasCode(error, "queue-full") || isGone()) throw error;
        await sleep(fullRetryMs);
      }
    }
    chunk = { firstLine: firstLine + lines, lines: 0, bytes: 0, content: [] };
  };

  const readHeader = (found: FileLine): void => {
    if ("problem" in found)
      throw new HeraldError("validation-failed", "body: the header of the CSV file is too long, or not UTF-8");
    if (csvRow(found.text, importLimits.columns, csvDelimiter(found.text)) === "too-many")
      throw new HeraldError(
        "validation-failed",
        `body: a CSV file may have at most ${importLimits.columns} columns; remove those that are not imported`,
      );
    header = found.text;
  };

  for await (const lines of files) {
    for (const found of lines) {
      line++;
      if (line > importLimits.lines)
        throw new HeraldError(
          "validation-failed",
          `body: may have at most ${importLimits.lines} lines; import it in parts`,
        );
      const isHeader = isCsv && header === undefined;
      if (isHeader) readHeader(found);
      if (line <= afterLine) continue;
      const isLeftOut = isHeader || ("text" in found && found.text.trim() === "");
      const bytes = isLeftOut ? 0 : "text" in found ? Buffer.byteLength(JSON.stringify(found.text)) + 24 : 48;
      if (chunk.lines === importLimits.chunkLines || chunk.bytes + bytes > importLimits.chunkBytes) await flush(false);
      chunk.lines++;
      chunk.bytes += bytes;
      if (!isLeftOut) chunk.content.push({ n: line, ...found });
    }
  }
  if (line < afterLine)
    throw new HeraldError(
      "import-position-mismatch",
      `after_line: the file has only ${line} lines; send the whole file, Herald skips those that it has`,
    );
  await flush(true);
};
