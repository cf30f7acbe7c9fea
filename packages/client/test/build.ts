import { execFileSync } from "node:child_process";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";

const folder = join(import.meta.dirname, "..");

/** Writes the package as it is published: one minified file, its types, and a package.json without references to the sources. */
export async function buildPackage(into: string): Promise<void> {
  const bundle = await rolldown({ input: join(folder, "src/index.ts"), platform: "neutral" });
  try {
    await bundle.write({ file: join(into, "dist/index.js"), minify: true });
  } finally {
    await bundle.close();
  }
  const tsc = join(folder, "../../node_modules/.bin/tsc");
  const project = join(folder, "test/tsconfig.types.json");
  execFileSync(tsc, ["-p", project, "--outDir", join(into, "dist")], { stdio: "inherit" });
  const {
    private: _,
    scripts: __,
    devDependencies: ___,
    exports,
    ...manifest
  } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const { types, default: main } = exports["."];
  const published = { ...manifest, exports: { ".": { types, default: main } } };
  await writeFile(join(into, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  await copyFile(join(folder, "README.md"), join(into, "README.md"));
}

/** `npm run build -w @herald/client -- <folder>`: writes what `npm publish` takes. Default: `dist/package`. */
if (import.meta.main) await buildPackage(resolve(process.argv[2] ?? join(folder, "dist/package")));
