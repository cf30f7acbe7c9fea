import { join } from "node:path";
import { runCommand } from "../processes/run-command.ts";
import { isCurrent } from "./built-files.ts";
import { type ProgramName, programs, recipe } from "./programs.ts";

/** A program takes a few seconds, and ten times as long on a busy machine. */
const bundleTimeoutMs = 180_000;

/** Runs the bundler in a process of its own, so that its memory is freed. Returns its output. Throws its errors. */
export const runBundler = async (root: string, name: ProgramName | "web"): Promise<string> => {
  const bundler = join(import.meta.dirname, "bundler.ts");
  const args = ["--conditions=@herald/source", bundler, root, name];
  const { ok, why, stdout } = await runCommand(process.execPath, args, { timeoutMs: bundleTimeoutMs });
  if (!ok) throw new Error(`bundling ${name}: ${stdout.trim() || why}`);
  return stdout;
};

/**
 * Bundles changed programs of the tree at `root`, one after the other. The memory of an idle process is mostly its loaded modules and the
 * cost of loading them, and from a bundle it loads only the code that it uses. Throws the bundler's errors.
 */
export const bundle = async (root: string, names: readonly ProgramName[]): Promise<void> => {
  for (const name of names)
    if (!(await isCurrent(root, join(root, programs[name].folder, "dist"), recipe))) await runBundler(root, name);
};
