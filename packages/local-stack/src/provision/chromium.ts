import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinary } from "../processes/find-binary.ts";
import { runCommand } from "../processes/run-command.ts";
import { cacheFolder } from "./cache-folder.ts";
import { whyNoDebian } from "./debian.ts";
import { exists, provision } from "./provision.ts";
import { unpackDeb } from "./unpack-deb.ts";

const aptTimeoutMs = 600_000;
const programNames = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const programPath = "usr/lib/chromium/chromium";
/** The number is this recipe's. */
const debianFolder = "chromium-debian-1";

/** A browser to run, and what its environment needs. */
export type Chromium = { executable: string; env: Record<string, string> };

/**
 * Chromium: `HERALD_CHROMIUM`, else the one on PATH, else Debian's package with what this machine lacks of its dependencies, unpacked
 * once into the user's cache. Throws a sentence that says what would help.
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
  const folder = await provision({ cache: cacheFolder(env), name: debianFolder, progress }, (building) =>
    unpackChromium(building, env, progress),
  ).catch((error: Error) => {
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

/** From the suite of this machine, so that its own C library serves: only what is not installed is fetched. */
async function unpackChromium(folder: string, env: NodeJS.ProcessEnv, progress: (line: string) => void) {
  const apt = join(folder, "apt");
  const archives = join(apt, "archives");
  await mkdir(join(apt, "lists", "partial"), { recursive: true });
  await mkdir(join(archives, "partial"), { recursive: true });
  const settings = {
    "Dir::State::lists": join(apt, "lists"),
    "Dir::Cache": apt,
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    "Debug::NoLocking": "true", // nothing is installed
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const run = async (args: string[]) => {
    const result = await runCommand("apt-get", [...flags, ...args], {
      env: { ...env, LC_ALL: "C" },
      timeoutMs: aptTimeoutMs,
    });
    if (!result.ok) throw new Error(`apt-get ${args[0]}: ${result.why}`);
  };
  await run(["update", "--error-on=any"]);
  progress("downloading Chromium from Debian");
  await run(["install", "--download-only", "--yes", "chromium"]);
  const root = join(folder, "root");
  await mkdir(root);
  const debs = (await readdir(archives)).filter((name) => name.endsWith(".deb")).sort();
  for (const deb of debs) await unpackDeb(join(archives, deb), root, env);
  // Ubuntu's package of this name only fetches a snap.
  if (!(await exists(join(root, programPath))))
    throw new Error("the package chromium of this machine holds no browser");
  await writeFile(join(folder, "packages.txt"), `${debs.map((deb) => deb.replace(/\.deb$/, "")).join("\n")}\n`);
  await rm(apt, { recursive: true });
}

/** Where the packages put libraries, one folder for each architecture and a few below. */
async function libraryFolders(root: string): Promise<string[]> {
  const found = await readdir(join(root, "usr/lib"), { recursive: true, withFileTypes: true });
  return [...new Set(found.filter(({ name }) => /\.so(\.|$)/.test(name)).map(({ parentPath }) => parentPath))];
}
