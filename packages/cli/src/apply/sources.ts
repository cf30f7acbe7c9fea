import { hash } from "node:crypto";
import { link, open, readFile, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { readText } from "../read-text.ts";
import type { Path, ShapeProblem } from "./check-shape.ts";
import type { ProjectFile, Source } from "./project-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

const readSource = async (path: string): Promise<string> => {
  try {
    return await readText(path);
  } catch (error) {
    throw isMissing(error) ? new Error(`there is no file ${path}`) : error;
  }
};

/** Another field would not be a text. */
const jsonField = "service_account";

/** Settings whose secrets stand in files and variables: reads them, and collects what is wrong. */
export const readSources = async (
  settings: Readonly<Record<string, unknown>>,
  path: Path,
  folder: string,
  env: Environment,
) => {
  const problems: ShapeProblem[] = [];
  const read = async ({ file, env: variable = "" }: Source): Promise<string> => {
    if (file !== undefined) return readSource(resolve(folder, file));
    const value = env[variable];
    if (value === undefined || value === "") throw new Error(`the variable ${variable} is not set`);
    return value;
  };
  const readValue = async (name: string, value: unknown): Promise<unknown> => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    try {
      const text = await read(value as Source);
      return name === jsonField ? JSON.parse(text) : text;
    } catch (error) {
      // JSON.parse would quote the secret.
      const why =
        error instanceof SyntaxError ? "is not JSON; use the file that Firebase gives" : (error as Error).message;
      problems.push({ path: [...path, name], message: why });
      return undefined;
    }
  };
  const entries = Object.entries(settings).map(async ([name, value]) => [name, await readValue(name, value)] as const);
  return { settings: Object.fromEntries(await Promise.all(entries)) as Record<string, unknown>, problems };
};

/** The content of each file that a secret is written to; absent where there is no such file. */
export const readWritten = async (
  { tokens = [], webhooks = [] }: ProjectFile,
  folder: string,
): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  for (const { secret } of [...tokens, ...webhooks]) {
    if (secret === undefined) continue;
    try {
      found.set(secret.write, (await readFile(resolve(folder, secret.write), "utf8")).trim());
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return found;
};

/**
 * Writes a secret that `make` resolves to into a new file that only its owner can read. The file has the whole secret or does not exist,
 * and is never overwritten. A folder that cannot be written to is found before the secret is made.
 */
export const writeSecret = async (path: string, make: () => Promise<string>): Promise<void> => {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}`);
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(`${await make()}\n`);
    await file.sync();
    await link(temporary, path);
  } finally {
    await file.close();
    await unlink(temporary);
  }
};

const sorted = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

const sha256 = (text: string): string => hash("sha256", text, "hex");

/** What `fingerprint` of a provider is when it has these settings. */
export const settingsFingerprint = (settings: unknown): string => sha256(JSON.stringify(settings, sorted));

/** What `fingerprint` of a token in a list is. */
export const tokenFingerprint = (token: string): string => sha256(token).slice(0, 16);
