import { join } from "node:path";
import { cacheFolder, findBinary, provision, unpackDebianPackages } from "@herald/local-stack";

export type Zsh = {
  readonly executable: string;
  /** The first lines of its `.zshrc`: an unpacked zsh finds its modules and functions elsewhere than an installed one. */
  readonly setup: string;
};

/** The number is this recipe's. */
const debianFolder = "zsh-debian-1";

/** zsh: the one on PATH, else Debian's package, unpacked once into the user's cache. Throws with the reason where there is none. */
export async function findZsh(env: NodeJS.ProcessEnv): Promise<Zsh> {
  const executable = await findBinary("zsh", env.PATH);
  if (executable) return { executable, setup: "" };
  const progress = () => {};
  const folder = await provision({ cache: cacheFolder(env), name: debianFolder, progress }, async (building) => {
    await unpackDebianPackages(building, ["zsh"], { env, progress, ownSuite: true });
  }).catch((error: Error) => {
    throw new Error(`There is no zsh on PATH, and it could not be fetched: ${error.message}`);
  });
  const root = join(folder, "root");
  const setup = `module_path=(${root}/usr/lib/*/zsh/*(N))\nfpath=(${root}/usr/share/zsh/functions/**/*(/N))`;
  return { executable: join(root, "bin/zsh"), setup };
}
