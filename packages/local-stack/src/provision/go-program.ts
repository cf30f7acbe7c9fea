import { cacheFolder } from "./cache-folder.ts";
import { goInstall } from "./go-install.ts";
import { provision } from "./provision.ts";

/** The folder of a pinned Go program, compiled once into the user's cache. Throws with the reason where Go is missing. */
export function goProgram(
  name: string,
  module: string,
  { env, progress }: { env: NodeJS.ProcessEnv; progress: (line: string) => void },
): Promise<string> {
  return provision({ cache: cacheFolder(env), name, progress }, async (folder) => {
    progress(`${name}: compiling ${module}`);
    const { ok, why } = await goInstall(module, folder, env);
    if (!ok) throw new Error(why);
  });
}
