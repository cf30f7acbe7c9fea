import { setTimeout as sleep } from "node:timers/promises";
import {
  type AppendRecipients,
  type PersonalTexts,
  type RecipientKind,
  type RecipientLine,
  recipientLimits,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import type { HashSet } from "./hash-set.ts";
import { createReadRecipient } from "./read-recipient.ts";
import type { FileLine } from "./read-upload.ts";

type Chunk = Omit<AppendRecipients, "projectId" | "notificationId" | "kind">;
/** A chunk that more lines may follow: each recipient as JSON. */
type OpenChunk = Omit<Chunk, "lines" | "keys" | "last" | "recipients"> & { lines: string[]; keys: string[] };

type Options = {
  readonly kind: RecipientKind;
  readonly texts: Pick<PersonalTexts, "values" | "declared">;
  readonly isCsv: boolean;
  readonly afterLine: number;
  readonly seen: HashSet;
  /** Stores a chunk. Throws queue-full while too many wait to be expanded. */
  readonly append: (chunk: Chunk) => Promise<unknown>;
  /** Whether the sender has disconnected. */
  readonly isGone: () => boolean;
};

/** Between tries while as many chunks wait as may. Registry expands one in less. */
const fullRetryMs = 100;

/** What was read of the lines so far. */
export type RecipientLineCounts = { lines: number; recipients: number; refused: number; duplicates: number };

/**
 * Reads the lines of a file as recipients and stores them in chunks, one after another: the sender is slowed down to the speed of the
 * expansion. Lines up to `afterLine` are read for their targets alone: a later line with the same target is a duplicate.
 */
export const storeRecipients = async (
  files: AsyncIterable<readonly FileLine[]>,
  { kind, texts, isCsv, afterLine, seen, append, isGone }: Options,
): Promise<RecipientLineCounts> => {
  const counts: RecipientLineCounts = { lines: 0, recipients: 0, refused: 0, duplicates: 0 };
  let read = isCsv ? undefined : createReadRecipient({ kind, texts, header: undefined });
  const empty = (firstLine: number): OpenChunk => ({
    firstLine,
    lastLine: firstLine - 1,
    lines: [],
    keys: [],
    errors: [],
    refused: 0,
    duplicates: 0,
  });
  let chunk = empty(afterLine + 1);
  let bytes = 0;

  const flush = async (last: boolean): Promise<void> => {
    const { lines, keys } = chunk;
    const texts = { lines: `[${lines.join(",")}]`, keys: JSON.stringify(keys) };
    const whole = { ...chunk, ...texts, recipients: lines.length, last };
    for (;;) {
      try {
        await append(whole);
        break;
      } catch (error) {
        if (!hasCode(error, "queue-full") || isGone()) throw error;
        await sleep(fullRetryMs);
      }
    }
    counts.recipients += chunk.lines.length;
    counts.refused += chunk.refused;
    counts.duplicates += chunk.duplicates;
    chunk = empty(chunk.lastLine + 1);
    bytes = 0;
  };

  const take = async (found: FileLine, n: number): Promise<void> => {
    const isBlank = "text" in found && found.text.trim() === "";
    const result = isBlank ? undefined : read?.(found);
    const line: RecipientLine | undefined = result && "key" in result ? { n, ...result } : undefined;
    const isNew = line !== undefined && seen.add(line.key);
    if (n <= afterLine) return;
    const json = isNew ? JSON.stringify(line) : "";
    const errors = result && "problems" in result ? result.problems.map((problem) => ({ line: n, ...problem })) : [];
    const size = Buffer.byteLength(json) + 1 + (errors.length > 0 ? Buffer.byteLength(JSON.stringify(errors)) : 0);
    const handled = chunk.lastLine - chunk.firstLine + 1;
    if (handled >= recipientLimits.chunkLines || bytes + size > recipientLimits.chunkBytes) await flush(false);
    chunk.lastLine = n;
    bytes += size;
    if (isNew) {
      chunk.lines.push(json);
      chunk.keys.push(line.key);
    } else if (line) chunk.duplicates++;
    else if (errors.length > 0) {
      chunk.refused++;
      chunk.errors.push(...errors);
    }
  };

  for await (const lines of files)
    for (const found of lines) {
      const n = ++counts.lines;
      if (n > recipientLimits.lines + 1)
        throw new HeraldError("validation-failed", `body: may have at most ${recipientLimits.lines} lines`);
      if (read === undefined) {
        const header = "text" in found ? found.text : "";
        // Split first: a tab that separates and is white space, too, would take quadratic time.
        if (!header.split(/[,;\t]/).some((name) => /^\s*"?target"?\s*$/.test(name)))
          throw new HeraldError(
            "validation-failed",
            "body: the first row must name the columns: `target`, and the variables",
          );
        read = createReadRecipient({ kind, texts, header });
        if (n > afterLine) chunk.lastLine = n;
      } else await take(found, n);
    }
  if (counts.lines < afterLine)
    throw new HeraldError(
      "import-position-mismatch",
      `after_line: the file has only ${counts.lines} lines; send the whole file, Herald skips those that it has`,
    );
  await flush(true);
  return counts;
};
