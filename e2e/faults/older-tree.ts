import { execFile } from "node:child_process";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { NotHere } from "./row.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const git = async (...args: string[]) => (await run("git", ["-C", root, ...args])).stdout.trim();

/** The oldest commit whose data, messages and variables this tree reads: the last one that changed `oldest-supported.md`. */
export const oldestSupported = async (): Promise<string | undefined> => {
  const changed = await git("log", "-1", "--format=%H", "--", "e2e/faults/oldest-supported.md").catch(() => "");
  return changed === "" ? undefined : changed;
};

/**
 * Checks out Herald at a commit into this folder. Its dependencies are linked to this tree's if they are the same, and installed otherwise.
 * Throws NotHere without a git history.
 */
export async function olderTree(folder: string, asked: string | undefined): Promise<{ tree: string; commit: string }> {
  const commit = await git("rev-parse", "--verify", `${asked}^{commit}`).catch(() => {
    throw new NotHere("there is no older commit in this copy");
  });
  const archive = join(folder, "tree.tar");
  const tree = join(folder, "tree");
  await mkdir(tree);
  await git("archive", "--output", archive, commit);
  await run("tar", ["-xf", archive, "-C", tree]);

  const sameDependencies = await git("diff", "--quiet", commit, "--", "package-lock.json").then(
    () => true,
    () => false,
  );
  if (sameDependencies) await linkDependencies(tree);
  else await run("npm", ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: tree });
  return { tree, commit };
}

const linkDependencies = async (tree: string): Promise<void> => {
  const modules = join(tree, "node_modules");
  await mkdir(join(modules, "@herald"), { recursive: true });
  const link = (name: string) => symlink(join(root, "node_modules", name), join(modules, name));
  const names = await readdir(join(root, "node_modules"));
  await Promise.all(names.filter((name) => name !== "@herald").map(link));
  for (const kind of ["packages", "services"])
    for (const name of await readdir(join(tree, kind)))
      await symlink(join(tree, kind, name), join(modules, "@herald", name));
};
