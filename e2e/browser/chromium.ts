import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, findBinary, provision, unpackDebianPackages, whyNoDebian } from "@herald/provision";

const programNames = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const programPath = "usr/lib/chromium/chromium";
/** The number is the version of this recipe. */
const debianFolder = "chromium-debian-1";

/** A browser executable and its environment variables. */
export type Chromium = { executable: string; env: Record<string, string> };

/**
 * Finds Chromium: `HERALD_CHROMIUM`, else on PATH, else Debian's package with the dependencies that this machine lacks, unpacked once
 * into the user's cache. Throws an error that names the remedy.
 */
export async function findChromium(env: NodeJS.ProcessEnv, progress: (line: string) => void): Promise<Chromium> {
  if (env.HERALD_CHROMIUM) return { executable: env.HERALD_CHROMIUM, env: {} };
  for (const name of programNames) {
    const executable = await findBinary(name, env.PATH);
    if (executable) return { executable, env: {} };
  }
  const remedy = "install Chromium (Debian: apt-get install chromium), or set HERALD_CHROMIUM to its path";
  const whyNot = await whyNoDebian(env);
  if (whyNot) throw new Error(`There is no Chromium on PATH, and ${whyNot}: ${remedy}`);
  const folder = await provision({ cache: cacheFolder(env), name: debianFolder, progress }, async (building) => {
    const say = (line: string) => progress(`Chromium: ${line}`);
    // From this machine's suite, so that Chromium works with its C library.
    const root = await unpackDebianPackages(building, ["chromium"], { env, progress: say, ownSuite: true });
    // Ubuntu's package with this name only installs a snap.
    if (!existsSync(join(root, programPath))) throw new Error("this machine's package chromium has no browser in it");
  }).catch((error: Error) => {
    throw new Error(`There is no Chromium on PATH, and it could not be fetched (${error.message}): ${remedy}`);
  });
  const root = join(folder, "root");
  return {
    executable: join(root, programPath),
    env: {
      LD_LIBRARY_PATH: (await libraryFolders(root)).join(":"),
      FONTCONFIG_PATH: join(root, "etc/fonts"),
    },
  };
}

/** The folders in which the packages install libraries: one for each architecture, and some of its subfolders. */
export async function libraryFolders(root: string): Promise<string[]> {
  const found = await readdir(join(root, "usr/lib"), { recursive: true, withFileTypes: true });
  return [...new Set(found.filter(({ name }) => /\.so(\.|$)/.test(name)).map(({ parentPath }) => parentPath))];
}
