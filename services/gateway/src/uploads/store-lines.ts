import { setTimeout as sleep } from "node:timers/promises";
import { lineLimits } from "@herald/contracts";
import { csvColumns, type FileLine, HeraldError, hasCode } from "@herald/kit";

/** Lines of a file that are stored together. `entries`: of those that are not left out. */
export type LineChunk<Entry> = {
  readonly firstLine: number;
  readonly lastLine: number;
  readonly entries: Entry[];
  /** It ends the file. */
  readonly last: boolean;
};

/** What the lines of a file are, and where they go. */
export type LineKind<Entry> = {
  /** `lines`: of a file, without its header; the others: of a chunk. */
  readonly limits: { readonly lines: number; readonly chunkLines: number; readonly chunkBytes: number };
  /** Gets the header of a CSV file before its rows. */
  readonly readHeader: (text: string) => void;
  /** Sees a line that an earlier upload has stored. */
  readonly skip?: (line: FileLine) => void;
  /** What a chunk has of a line that is not blank, and how many bytes of it. */
  readonly read: (line: FileLine, n: number) => { readonly entry: Entry; readonly bytes: number };
  /** Throws queue-full while too many chunks wait. */
  readonly store: (chunk: LineChunk<Entry>) => Promise<unknown>;
};

/** Between tries while too many chunks wait: they keep the service behind them busy for longer. */
const fullRetryMs = 250;

type Options = {
  readonly isCsv: boolean;
  readonly afterLine: number;
  /** Whether the sender has disconnected. */
  readonly isGone: () => boolean;
};

const headerOf = (line: FileLine): string => {
  if ("problem" in line)
    throw new HeraldError("validation-failed", "body: the header of the CSV file is too long, or not UTF-8");
  if (csvColumns(line.text) === "too-many")
    throw new HeraldError(
      "validation-failed",
      `body: a CSV file may have at most ${lineLimits.columns} columns; remove those that Herald does not need`,
    );
  return line.text;
};

const isBlank = (line: FileLine): boolean => "text" in line && line.text.trim() === "";

/**
 * Stores the lines of a file in chunks, one after another: while too many wait, the sender is slowed down. Chunk borders do not depend on
 * the upload, so one that continues after stored lines repeats and skips none.
 * @throws HeraldError `validation-failed` for an unreadable header or too many lines, `import-position-mismatch` for too few, and what
 * storing throws.
 */
export const storeLines = async <Entry>(
  files: AsyncIterable<readonly FileLine[]>,
  { isCsv, afterLine, isGone }: Options,
  { limits, readHeader, skip, read, store }: LineKind<Entry>,
): Promise<void> => {
  const headerLines = isCsv ? 1 : 0;
  let n = 0;
  let chunk = { firstLine: afterLine + 1, lastLine: afterLine, entries: [] as Entry[] };
  let chunkBytes = 0;

  const flush = async (last: boolean): Promise<void> => {
    for (;;) {
      try {
        await store({ ...chunk, last });
        break;
      } catch (error) {
        if (!hasCode(error, "queue-full") || isGone()) throw error;
        await sleep(fullRetryMs);
      }
    }
    chunk = { firstLine: chunk.lastLine + 1, lastLine: chunk.lastLine, entries: [] };
    chunkBytes = 0;
  };

  for await (const lines of files) {
    for (const line of lines) {
      n++;
      if (n > limits.lines + headerLines)
        throw new HeraldError("validation-failed", `body: may have at most ${limits.lines} lines; split the file`);
      const isHeader = n <= headerLines;
      if (isHeader) readHeader(headerOf(line));
      const isLeftOut = isHeader || isBlank(line);
      if (n <= afterLine) {
        if (!isLeftOut) skip?.(line);
        continue;
      }
      const found = isLeftOut ? undefined : read(line, n);
      const bytes = found?.bytes ?? 0;
      if (n - chunk.firstLine >= limits.chunkLines || chunkBytes + bytes > limits.chunkBytes) await flush(false);
      chunk.lastLine = n;
      chunkBytes += bytes;
      if (found) chunk.entries.push(found.entry);
    }
  }
  if (n < afterLine)
    throw new HeraldError(
      "import-position-mismatch",
      `after_line: the file has only ${n} lines; send the whole file, Herald skips those that it has`,
    );
  await flush(true);
};
