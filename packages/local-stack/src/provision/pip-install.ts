import { findBinary } from "../processes/find-binary.ts";
import { runCommand } from "../processes/run-command.ts";
import { cacheFolder } from "./cache-folder.ts";
import { provision } from "./provision.ts";

/** A large program with a hundred dependencies takes half a minute; ten minutes is a machine that hangs. */
const pipInstallTimeoutMs = 600_000;

/**
 * A folder with the pinned Python packages, fetched once into the user's cache: run `python3` with it as `PYTHONPATH`. Not
 * a virtual environment, because those cannot be renamed into place. Throws with the reason where Python or pip is missing.
 */
export function pipInstall(
  name: string,
  requirements: readonly string[],
  { env, progress }: { env: NodeJS.ProcessEnv; progress: (line: string) => void },
): Promise<string> {
  return provision({ cache: cacheFolder(env), name, progress }, async (folder) => {
    const python = await findBinary("python3", env.PATH);
    if (!python) throw new Error(`${name} needs python3 on the PATH`);
    progress(`${name}: fetching from PyPI`);
    const args = ["-m", "pip", "install", "--quiet", "--no-input", "--target", folder, ...requirements];
    const { ok, why } = await runCommand(python, args, { env, timeoutMs: pipInstallTimeoutMs });
    if (!ok) throw new Error(`pip install ${requirements.join(" ")}: ${why}`);
  });
}
