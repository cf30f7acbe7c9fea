import { openAsBlob } from "node:fs";
import { access, constants } from "node:fs/promises";
import type { LineError } from "@herald/client";
import { UsageError } from "../failures.ts";
import { formatNumber } from "../terminal/text.ts";

/** The maximum number of printed errors; the API lists all stored errors. */
export const shownErrors = 20;

/** Derived from the file's name, with or without `.gz`. */
export const contentTypeOf = (file: string): string => {
  const name = file.replace(/\.gz$/i, "");
  if (/\.csv$/i.test(name)) return "text/csv";
  return /\.(txt|xml)$/i.test(name) ? "text/plain" : "application/x-ndjson";
};

export const openFile = async (file: string): Promise<Blob> => {
  try {
    // The error of openAsBlob does not say why.
    await access(file, constants.R_OK);
    return await openAsBlob(file);
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};

/** One line of text for each error. */
export const lineErrorWords = (errors: readonly LineError[]): string[] =>
  errors.map(({ line, field, reason }) => `  line ${formatNumber(line)}: ${field === "" ? "" : `${field}: `}${reason}`);
