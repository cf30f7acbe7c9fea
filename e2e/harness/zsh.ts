import { join } from "node:path";
import { cacheFolder, findBinary, provision, unpackDebianPackages } from "@herald/provision";

export type Zsh = {
  readonly executable: string;
  /** The first lines of its `.zshrc`, with the folders of modules and functions of an unpacked zsh. */
  readonly setup: string;
};

/** The number is the version of this recipe: raise it after a change. */
const debianFolder = "zsh-debian-1";

/** The zsh on PATH, otherwise Debian's package, unpacked once into the user's cache. Throws the reason if neither exists. */
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
