import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runBundler } from "./bundle.ts";
import { runNode } from "./run-node.ts";

/** The files of the browser kit, minified, by name. */
export type WebKit = Readonly<Record<"herald.js" | "herald-worker.js", string>>;

/** Bundles the browser kit of the tree at `root`. Throws the bundler's errors. */
export const bundleWebKit = async (root: string): Promise<WebKit> =>
  JSON.parse(await runBundler(root, "web")) as WebKit;

/** Writes the kit and its types into `packages/web/dist`. Throws the compiler's errors. */
export const writeWebKit = async (root: string): Promise<void> => {
  const folder = join(root, "packages/web");
  const dist = join(folder, "dist");
  await mkdir(dist, { recursive: true });
  for (const [name, code] of Object.entries(await bundleWebKit(root))) await writeFile(join(dist, name), code);
  const flags = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", dist];
  await runNode("tsc -p packages/web", [join(root, "node_modules/.bin/tsc"), "-p", folder, ...flags]);
};
