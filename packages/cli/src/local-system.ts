import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Environment, Profile } from "./profiles.ts";

/** A system that `npm start` runs on this machine, and the file in which it was found. */
export type LocalSystem = Profile & { readonly url: string; readonly file: string };

/** Where `npm start` writes its addresses and tokens: `HERALD_DATA_DIR`, or `.herald` of this folder or one above it. */
const filesFrom = ({ HERALD_DATA_DIR }: Environment): string[] => {
  if (HERALD_DATA_DIR) return [resolve(HERALD_DATA_DIR, "local.json")];
  const files: string[] = [];
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    files.push(join(folder, ".herald", "local.json"));
    if (folder === dirname(folder)) return files;
  }
};

/** `npm start` listens on this machine alone. Another address in such a file is not its own, and would get tokens of the environment. */
const isHere = (url: unknown): url is string =>
  URL.canParse(String(url)) && new URL(String(url)).hostname === "127.0.0.1";

const parse = (file: string, text: string): LocalSystem | undefined => {
  try {
    const { gateway, adminToken, project } = JSON.parse(text);
    return isHere(gateway)
      ? { file, url: gateway, token: project?.token, admin_token: adminToken, project: project?.id }
      : undefined;
  } catch {
    return undefined;
  }
};

/** Undefined: there is none. A file of another user, as anyone could put into `/tmp/.herald`, would send tokens of the environment to them. */
const readOwn = async (path: string): Promise<string | undefined> => {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { uid } = await file.stat();
    return process.getuid === undefined || uid === process.getuid() ? await file.readFile("utf8") : undefined;
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
};

/** The system that `npm start` runs in this checkout, as this user. The file exists only while it is ready. */
export const findLocalSystem = async (env: Environment): Promise<LocalSystem | undefined> => {
  for (const file of filesFrom(env)) {
    const text = await readOwn(file);
    if (text !== undefined) return parse(file, text);
  }
  return undefined;
};
