import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { runCommand } from "./run-command.ts";

/** The first executable of that name on the given PATH. */
export async function findBinary(name: string, path: string | undefined): Promise<string | undefined> {
  for (const folder of (path ?? "").split(delimiter).filter(Boolean)) {
    const candidate = join(folder, name);
    const found = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return candidate;
  }
  return undefined;
}

/** The version that a binary names with `--version`, as it stands there: `2.15.2`. */
export async function binaryVersion(binary: string): Promise<string | undefined> {
  const { ok, stdout } = await runCommand(binary, ["--version"], { timeoutMs: 10_000 });
  return ok ? /v?(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1] : undefined;
}

/** Compares by major and minor, which is what the minima of this package are given in. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [minMajor = 0, minMinor = 0] = minimum.split(".").map(Number);
  return major > minMajor || (major === minMajor && minor >= minMinor);
}
