import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

const inputs = "inputs.json";

/** Replaces the file atomically, because another start may read it at the same time. Its modification time becomes `at`. */
export const replaceFile = async (file: string, content: string | Uint8Array, at: Date): Promise<void> => {
  const temporary = `${file}.${randomUUID()}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(temporary, content);
  // A source that is saved while the bundler runs must be newer than the bundle.
  await utimes(temporary, at, at);
  await rename(temporary, file);
};

const changedAt = async (file: string): Promise<number> => (await stat(file)).mtimeMs;

/** Whether neither the recipe nor a source has changed since `dist` was built. */
export const isCurrent = async (root: string, dist: string, recipe: readonly string[]): Promise<boolean> => {
  try {
    const sources = JSON.parse(await readFile(join(dist, inputs), "utf8")) as string[];
    const at = await changedAt(join(dist, inputs));
    const changes = await Promise.all([...recipe, ...sources].map((source) => changedAt(join(root, source))));
    return changes.every((change) => change < at);
  } catch {
    // The build does not exist yet, or a source was removed.
    return false;
  }
};

/** A process that was started from an earlier build may still load its files. */
const keepMs = 86_400_000;

/** Removes files of earlier builds that are at least a day old. */
export const removeOld = async (folder: string, written: ReadonlySet<string>): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    // Another start may build too, and a file that it is renaming now is not old.
    const at = await changedAt(file).catch(() => Date.now());
    if (!written.has(file) && Date.now() - at >= keepMs) await rm(file, { force: true });
  }
};

/** Records the sources of `dist`, absolute paths below `root`. Call this last, so that only a complete build is current. */
export const writeInputs = (root: string, dist: string, sources: readonly string[], at: Date): Promise<void> =>
  replaceFile(join(dist, inputs), JSON.stringify(sources.map((id) => relative(root, id))), at);
