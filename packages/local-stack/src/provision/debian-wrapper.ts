import { readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

const triplets: Partial<Record<NodeJS.Architecture, { triplet: string; loader: string }>> = {
  x64: { triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  arm64: { triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

/** The root's library folder of this machine's architecture, from the root. */
export function libraryFolder(): string {
  return join("usr/lib", platform().triplet);
}

/**
 * Puts a script in the place of a program that runs it with the root's own loader and libraries: it was linked against a
 * newer C library than this machine's. The root may move, so the script finds it from its own place.
 */
export async function wrapProgram(root: string, program: string, libraries: readonly string[]): Promise<void> {
  const depth = program.split("/").length - 1;
  const path = join(root, program);
  await rename(path, `${path}.bin`);
  const folders = libraries.map((folder) => `$root/${folder}`).join(":");
  const script = `#!/bin/sh
self=$(readlink -f "$0")
root=$(cd "$(dirname "$self")${"/..".repeat(depth)}" && pwd -P)
exec "$root/${libraryFolder()}/${platform().loader}" --library-path "${folders}" --argv0 "$self" "$self.bin" "$@"
`;
  await writeFile(path, script, { mode: 0o755 });
}

/** Sub-folders of the library folder that hold a library each program needs, such as the variants of BLAS. */
export async function librarySubfolders(root: string, names: readonly string[]): Promise<string[]> {
  const present = await readdir(join(root, libraryFolder()));
  return names.filter((name) => present.includes(name)).map((name) => join(libraryFolder(), name));
}

function platform(): { triplet: string; loader: string } {
  const known = triplets[process.arch];
  if (!known) throw new Error(`Debian packages are not used on ${process.arch}`);
  return known;
}
