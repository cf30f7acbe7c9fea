import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { UsageError } from "./failures.ts";

/**
 * The text of a file, or of standard input for `-`, without a byte order mark. Throws the error of the file system, or a UsageError for bytes
 * that are not UTF-8: devices would show U+FFFD in their place.
 */
export const readText = async (file: string): Promise<string> => {
  const bytes = file === "-" ? await buffer(process.stdin) : await readFile(file);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${file}: is not UTF-8; save it as UTF-8.`);
  }
};
