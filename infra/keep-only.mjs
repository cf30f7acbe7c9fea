/**
 * Leaves of the workspaces only one part and what it runs on, without development dependencies, so that an install after it
 * makes a small image. For use in infra/Dockerfile, on a copy: `node infra/keep-only.mjs gateway`.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const read = (file) => JSON.parse(readFileSync(file, "utf8"));
const folders = ["packages", "services"].flatMap((parent) => readdirSync(parent).map((name) => `${parent}/${name}`));
const folderOf = new Map(folders.map((folder) => [read(`${folder}/package.json`).name, folder]));

const kept = new Set();
const keep = (name) => {
  const folder = folderOf.get(name);
  if (folder === undefined || kept.has(folder)) return;
  kept.add(folder);
  for (const dependency of Object.keys(read(`${folder}/package.json`).dependencies ?? {})) keep(dependency);
};
keep(`@herald/${process.argv[2]}`);
if (kept.size === 0)
  throw new Error(`SERVICE must be one of ${[...folderOf.keys()].map((name) => name.slice(8)).join(", ")}`);

for (const folder of [...folders, "e2e", "bench", "examples"])
  if (!kept.has(folder)) rmSync(folder, { recursive: true, force: true });
for (const file of ["package.json", ...[...kept].map((folder) => `${folder}/package.json`)]) {
  const { devDependencies, optionalDependencies, ...manifest } = read(file);
  if (file === "package.json") manifest.workspaces = [...kept];
  writeFileSync(file, JSON.stringify(manifest));
}
