import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isCurrent, removeOld, replaceFile, writeInputs } from "./built-files.ts";
import { runNode } from "./run-node.ts";

const compress = promisify(gzip);

/** Files that determine the built console besides its sources. */
const recipe = ["package-lock.json", "tools/bundle/src/console.ts"];
const sourceFolders = ["packages/console", "packages/client/src"];

const filesBelow = async (folder: string): Promise<string[]> => {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((one) => one.isFile() && !/node_modules|\.test\.ts$/.test(join(one.parentPath, one.name)))
    .map((one) => join(one.parentPath, one.name));
};

/**
 * Builds the console of the tree at `root`, if it has changed, into the folder that the gateway serves, with a compressed copy of each
 * file. Throws the bundler's errors.
 */
export const buildConsole = async (root: string): Promise<void> => {
  const parent = join(root, "services/gateway/dist");
  const dist = join(parent, "console");
  if (await isCurrent(root, dist, recipe)) return;
  const begunAt = new Date();
  const sources = (await Promise.all(sourceFolders.map((folder) => filesBelow(join(root, folder))))).flat();
  await mkdir(parent, { recursive: true });
  const made = await mkdtemp(join(parent, "console-"));
  try {
    const vite = join(root, "node_modules/vite/bin/vite.js");
    const args = [vite, "build", "--outDir", made, "--emptyOutDir", "--logLevel", "warn"];
    await runNode("vite build packages/console", args, {
      cwd: join(root, "packages/console"),
      // Tests set NODE_ENV to `test`, which would give a development build of React.
      env: { ...process.env, NODE_ENV: "production" },
    });
    const written = new Set<string>();
    const files = (await filesBelow(made)).map((file) => file.slice(made.length + 1));
    // Write the page last, so that the files that it names exist.
    for (const name of files.toSorted((one, other) => Number(one === "index.html") - Number(other === "index.html"))) {
      const content = await readFile(join(made, name));
      const file = join(dist, name);
      await replaceFile(`${file}.gz`, await compress(content, { level: 9 }), begunAt);
      await replaceFile(file, content, begunAt);
      written.add(file).add(`${file}.gz`);
    }
    await removeOld(join(dist, "assets"), written);
    await writeInputs(root, dist, sources, begunAt);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
};
