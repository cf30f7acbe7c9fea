import { cacheFolder, findBinary, goInstall, installTimeoutMs, provision, runCommand } from "@herald/provision";

type Fetch = { env: NodeJS.ProcessEnv; progress: (line: string) => void };
type Linked = { linked?: Readonly<Record<string, string>> };

/** The folder of a pinned Go program, compiled once into the user's cache. Throws with the reason if Go is missing. */
export const goProgram = (
  name: string,
  module: string,
  { env, progress, ...linked }: Fetch & Linked,
): Promise<string> =>
  provision({ cache: cacheFolder(env), name, progress }, (folder) => {
    progress(`${name}: downloading ${module}`);
    return goInstall(module, folder, { env, progress: (line) => progress(`${name}: ${line}`), ...linked });
  });

/**
 * A folder with the pinned Python packages, fetched once into the user's cache. Run `python3` with the folder as `PYTHONPATH`. It is not
 * a virtual environment, because a virtual environment cannot be renamed. Throws with the reason if Python or pip is missing.
 */
export const pipInstall = (name: string, requirements: readonly string[], { env, progress }: Fetch): Promise<string> =>
  provision({ cache: cacheFolder(env), name, progress }, async (folder) => {
    const python = await findBinary("python3", env.PATH);
    if (!python) throw new Error(`${name} needs python3 on the PATH`);
    progress(`${name}: fetching from PyPI`);
    const args = ["-m", "pip", "install", "--quiet", "--no-input", "--target", folder, ...requirements];
    const { ok, why } = await runCommand(python, args, { env, timeoutMs: installTimeoutMs });
    if (!ok) throw new Error(`pip install ${requirements.join(" ")}: ${why}`);
  });
