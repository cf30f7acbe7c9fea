import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

const inputs = "inputs.json";

/** Another start may read it at the same time, so that it is replaced as a whole. */
export const replaceFile = async (file: string, content: string | Uint8Array, at: Date): Promise<void> => {
  const temporary = `${file}.${randomUUID()}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(temporary, content);
  // What is saved while the bundler runs is newer than the bundle.
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
    // It is not there yet, or a source is not there any more.
    return false;
  }
};

/** What was started from an earlier build may still load some of it. */
const keepMs = 86_400_000;

/** Removes what earlier builds left in a folder a day ago or earlier. */
export const removeOld = async (folder: string, written: ReadonlySet<string>): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    // Another start may build, too: what it has just renamed is not old.
    const at = await changedAt(file).catch(() => Date.now());
    if (!written.has(file) && Date.now() - at >= keepMs) await rm(file, { force: true });
  }
};

/** Says what `dist` was built from, absolute paths below `root`. It comes last: only a whole build is current. */
export const writeInputs = (root: string, dist: string, sources: readonly string[], at: Date): Promise<void> =>
  replaceFile(join(dist, inputs), JSON.stringify(sources.map((id) => relative(root, id))), at);
