import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { runCommand } from "../processes/run-command.ts";

/** The files of the browser kit, minified, by name. */
export type WebKit = Readonly<Record<"herald.js" | "herald-worker.js", string>>;

/** The page's part is a module; the service worker is a classic script, so that another worker can import it. */
const files = [
  { name: "herald.js", input: "index.ts", format: "esm" },
  { name: "herald-worker.js", input: "worker/main.ts", format: "iife" },
] as const;

/** Bundles the browser kit of the tree at `root`. Throws the bundler's errors. */
export const bundleWebKit = async (root: string): Promise<WebKit> => {
  const bundled = await Promise.all(
    files.map(async ({ name, input, format }) => {
      const build = await rolldown({ input: join(root, "packages/web/src", input), platform: "browser" });
      try {
        const { output } = await build.generate({ format, minify: true });
        return [name, output[0].code] as const;
      } finally {
        await build.close();
      }
    }),
  );
  return Object.fromEntries(bundled) as WebKit;
};

/** Writes the kit and its types into `packages/web/dist`. Throws the compiler's errors. */
export const writeWebKit = async (root: string): Promise<void> => {
  const folder = join(root, "packages/web");
  const dist = join(folder, "dist");
  await mkdir(dist, { recursive: true });
  for (const [name, code] of Object.entries(await bundleWebKit(root))) await writeFile(join(dist, name), code);
  const flags = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", dist];
  const tsc = [join(root, "node_modules/.bin/tsc"), "-p", folder, ...flags];
  const { ok, why } = await runCommand(process.execPath, tsc, { timeoutMs: 60_000 });
  if (!ok) throw new Error(`tsc -p packages/web: ${why}`);
};
