import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { isCurrent, removeOld, replaceFile, writeInputs } from "./built-files.ts";
import { runNode } from "./run-node.ts";

const copies = {
  ".br": promisify(brotliCompress),
  ".gz": (content: Buffer) => promisify(gzip)(content, { level: 9 }),
};

const filesBelow = async (folder: string): Promise<string[]> => {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((one) => one.isFile() && !/node_modules|\.test\.ts$/.test(join(one.parentPath, one.name)))
    .map((one) => join(one.parentPath, one.name));
};

type Pages = {
  /** Their folder below the one of the built gateway. */
  readonly name: string;
  /** Folders of their sources. */
  readonly from: readonly string[];
  /** Writes them into a new folder, in a process of its own. */
  readonly make: (into: string) => Promise<unknown>;
};

/** Makes pages of the tree at `root`, if their sources have changed, where the gateway serves them, with compressed copies of each file. */
const buildPages = async (root: string, { name, from, make }: Pages): Promise<void> => {
  const parent = join(root, "services/gateway/dist");
  const dist = join(parent, name);
  if (await isCurrent(root, dist, ["package-lock.json", "tools/bundle/src/pages.ts"])) return;
  const begunAt = new Date();
  const sources = (await Promise.all(from.map((folder) => filesBelow(join(root, folder))))).flat();
  await mkdir(parent, { recursive: true });
  const made = await mkdtemp(join(parent, `${name}-`));
  try {
    await make(made);
    const written = new Set<string>();
    const files = (await filesBelow(made)).map((file) => file.slice(made.length + 1));
    // Write the console's page last, so that the files that it names exist.
    for (const name of files.toSorted((one, other) => Number(one === "index.html") - Number(other === "index.html"))) {
      const content = await readFile(join(made, name));
      const file = join(dist, name);
      for (const [ending, compress] of Object.entries(copies)) {
        await replaceFile(`${file}${ending}`, await compress(content), begunAt);
        written.add(`${file}${ending}`);
      }
      await replaceFile(file, content, begunAt);
      written.add(file);
    }
    await removeOld(join(dist, "assets"), written);
    await writeInputs(root, dist, sources, begunAt);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
};

/** Builds the console. Throws the bundler's errors. */
export const buildConsole = (root: string): Promise<void> =>
  buildPages(root, {
    name: "console",
    from: ["packages/console", "packages/client/src"],
    make: (into) => {
      const vite = join(root, "node_modules/vite/bin/vite.js");
      const args = [vite, "build", "--outDir", into, "--emptyOutDir", "--logLevel", "warn"];
      return runNode("vite build packages/console", args, {
        cwd: join(root, "packages/console"),
        // Tests set NODE_ENV to `test`, which would give a development build of React.
        env: { ...process.env, NODE_ENV: "production" },
      });
    },
  });

/** Renders the documentation of the gateway's routes and of the events. */
export const buildDocs = (root: string): Promise<void> =>
  buildPages(root, {
    name: "docs",
    from: [
      "tools/docs/src",
      "services/gateway/src",
      ...["bus", "contracts", "kit", "payload", "rules"].map((name) => `packages/${name}/src`),
    ],
    make: (into) =>
      runNode("rendering the documentation", [
        "--conditions=@herald/source",
        join(root, "tools/docs/src/main.ts"),
        into,
      ]),
  });
