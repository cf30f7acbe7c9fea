import type { IncomingMessage } from "node:http";
import type { ProjectId } from "@herald/contracts";
import type { RateLimits } from "../auth/rate-limits.ts";
import { readUpload, splitLines } from "./read-upload.ts";
import { createSpend } from "./spend.ts";
import { type LineKind, storeLines } from "./store-lines.ts";
import { watchUpload } from "./watch-upload.ts";

type Upload<Entry> = {
  readonly projectId: ProjectId;
  readonly message: IncomingMessage;
  readonly isCsv: boolean;
  /** The lines that are stored. */
  readonly afterLine: number;
  /** Throws when its caller may no longer send it, or when no one waits for its lines. */
  readonly check: () => Promise<unknown>;
  /** Memory that the upload holds and others need. */
  readonly heldBytes?: () => number;
  readonly kind: LineKind<Entry>;
};

/** Stores the lines of the file that a request carries, no faster than they are processed. Throws what is wrong with the file. */
export const storeUpload = async <Entry>(
  { limits }: { readonly limits: Pick<RateLimits, "countImported"> },
  { projectId, message, isCsv, afterLine, check, heldBytes, kind }: Upload<Entry>,
): Promise<void> => {
  const watch = watchUpload(message, check, heldBytes);
  const { isGone } = watch;
  const spend = createSpend((bytes) => limits.countImported(projectId, bytes), isGone);
  const lines = splitLines(readUpload(message, watch), isCsv, spend);
  await storeLines(lines, { isCsv, afterLine, isGone }, kind).finally(watch.stop);
};
