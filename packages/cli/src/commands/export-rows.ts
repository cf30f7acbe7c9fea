import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { ExportedText, ExportFormat } from "@herald/client";
import type { Context } from "../context.ts";
import { option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { count } from "../terminal/text.ts";

export type ExportChoice = { readonly format?: ExportFormat; readonly after?: string };

export const exportOptions = [
  option("--format <format>", "ndjson or csv").choices(["ndjson", "csv"]).default("ndjson"),
  option("--after <id>", "resume after the row with this id; adds to the file"),
];

/** Rows between two updates of the progress line. */
const progressEvery = 1_000;

const rowsWritten = (rows: number): string => (rows === 1 ? "1 row" : `${count(rows)} rows`);

const openFile = async (file: string, resumed: boolean): Promise<Writable> => {
  const stream = createWriteStream(file, { flags: resumed ? "a" : "w" });
  await new Promise<void>((resolve, reject) => stream.once("open", () => resolve()).once("error", reject));
  return stream;
};

/** Writes an export into a file, or to stdout. Ctrl-C says how to resume it. */
export const exportRows = async (
  { terminal, stdout, signal, onInterrupt, onStop, result }: Context,
  file: string | undefined,
  { after }: ExportChoice,
  lines: AsyncIterable<ExportedText>,
): Promise<void> => {
  const out = file === undefined ? stdout : await openFile(file, after !== undefined);
  let failure: unknown;
  const onError = (error: unknown) => {
    failure = error;
  };
  if (file !== undefined) out.on("error", onError);
  let rows = 0;
  let last = after;
  const resume = () =>
    last === undefined ? "Nothing was written." : `Wrote ${rowsWritten(rows)}. \`--after ${last}\` resumes here.`;
  onInterrupt(resume());
  try {
    for await (const { id, text } of lines) {
      if (failure !== undefined) break;
      if (!out.write(text)) await drained(out, signal);
      if (id === undefined) continue;
      last = id;
      rows++;
      onStop(resume());
      if (rows % progressEvery === 0) terminal.progress(`${count(rows)} rows…`);
    }
  } finally {
    terminal.progress();
    if (file !== undefined) {
      out.end();
      await finished(out).catch(onError);
    }
  }
  if (failure !== undefined) throw new UsageError(`${file}: ${(failure as Error).message}`);
  if (file !== undefined) result({ file, rows, last }, () => `Wrote ${rowsWritten(rows)} to ${file}.`);
};

const drained = (out: Writable, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void) => () => {
      for (const name of ["drain", "error", "close"]) out.off(name, onEnd);
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const onEnd = end(resolve);
    const onAbort = end(() => reject(signal.reason));
    for (const name of ["drain", "error", "close"]) out.once(name, onEnd);
    signal.addEventListener("abort", onAbort, { once: true });
  });
