import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinary, runCommand, secondsSince } from "../processes/run-command.ts";

/** The Debian suite with PostgreSQL 18, DocumentDB and a recent enough nats-server. */
const debianSuite = "forky";
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const aptTimeoutMs = 600_000;
/** Unpacking takes turns of a core and the disk. */
const unpackedAtOnce = 2;

/** Why this machine cannot unpack Debian packages; undefined if it can. */
export async function whyNoDebian(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const tool of ["apt-get", "dpkg-deb", "tar"]) {
    if (!(await findBinary(tool, env.PATH))) return `${tool} is not installed`;
  }
  return undefined;
}

type Options = {
  env: NodeJS.ProcessEnv;
  progress: (line: string) => void;
  ownSuite?: boolean;
  suite?: string;
  without?: RegExp;
  leaveOut?: readonly string[];
};

/**
 * Downloads packages with their dependencies from Debian's next suite, or another one, and unpacks them into `<folder>/root`. It uses a separate apt
 * state, so it installs nothing into the system and needs no root. It verifies signatures with the machine's keyring and records the
 * packages' names and versions in `<folder>/packages.txt`. With `ownSuite` it uses the machine's own sources and skips dependencies that
 * the machine has installed: such programs need no loader of their own. The packages themselves are unpacked in any case. `without` matches
 * dependencies that the programs never load; apt takes them for installed. A new suite may name one differently: then it is downloaded too.
 * `leaveOut` are patterns of files that are not unpacked.
 */
export async function unpackDebianPackages(
  folder: string,
  packages: readonly string[],
  { env, progress, ownSuite = false, suite = debianSuite, without, leaveOut = [] }: Options,
): Promise<string> {
  const from = ownSuite ? "this machine's sources" : `Debian ${suite}`;
  const apt = join(folder, "apt");
  const archives = join(apt, "cache", "archives");
  await mkdir(join(apt, "state", "lists", "partial"), { recursive: true });
  await mkdir(join(archives, "partial"), { recursive: true });
  const installed = ownSuite ? await readFile("/var/lib/dpkg/status", "utf8") : "";
  await writeFile(join(apt, "status"), withoutPackages(installed, packages));
  const signedBy = existsSync(debianKeyring) ? ` [signed-by=${debianKeyring}]` : "";
  await writeFile(join(apt, "sources.list"), `deb${signedBy} ${await debianSite(env)} ${suite} main\n`);

  const otherSuite = {
    "Dir::Etc::sourcelist": join(apt, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
  };
  const settings = {
    "Dir::State": join(apt, "state"),
    "Dir::State::status": join(apt, "status"),
    "Dir::Cache": join(apt, "cache"),
    ...(!ownSuite && otherSuite),
    "Debug::NoLocking": "true", // apt installs nothing here, and only root could lock
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "", // only this user can write to the folder, not apt's own user
    "Acquire::Languages": "none",
    // Descriptions for software centres: a third of what an update downloads.
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::Retries": "2",
    "Acquire::http::Timeout": "15",
    "Acquire::https::Timeout": "15",
    // Container images often configure apt to delete its archives, which would happen before they are unpacked.
    "Dir::Cache::pkgcache": "pkgcache.bin",
    "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const run = async (args: string[], tool = "apt-get") => {
    const result = await runCommand(tool, [...flags, ...args], {
      env: { ...env, LC_ALL: "C" },
      timeoutMs: aptTimeoutMs,
    });
    if (!result.ok) throw new Error(`${tool} ${args[0]} (${from}): ${result.why}`);
    return result.stdout;
  };
  let begunAt = Date.now();
  // Some of the machine's sources may be unreachable although these packages do not need them.
  await run(ownSuite ? ["update"] : ["update", "--error-on=any"]);
  if (without) {
    const all = await run(["depends", "--recurse", "--important", ...packages], "apt-cache");
    const names = all.split("\n").filter((name) => without.test(name));
    if (names.length > 0) await writeFile(join(apt, "status"), takenForInstalled(names));
  }
  progress(`downloading ${packages.join(" and ")} with dependencies from ${from}`);
  await run(["install", "--download-only", "--yes", ...packages]);

  const root = join(folder, "root");
  await mkdir(root);
  const debs = (await readdir(archives)).filter((name) => name.endsWith(".deb")).sort();
  const sizes = await Promise.all(debs.map(async (deb) => (await stat(join(archives, deb))).size));
  const megabytes = Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1_000_000);
  progress(`downloaded ${megabytes} MB in ${secondsSince(begunAt)} s; unpacking ${debs.length} packages`);
  begunAt = Date.now();
  const left = debs.values();
  const unpackOthers = async () => {
    for (const deb of left) await unpackDeb(join(archives, deb), root, { env, leaveOut });
  };
  const unpacking = Array.from({ length: unpackedAtOnce }, unpackOthers);
  // A failure must not leave one that still writes.
  await Promise.allSettled(unpacking);
  await Promise.all(unpacking);
  await writeFile(join(folder, "packages.txt"), `${debs.map((deb) => deb.replace(/\.deb$/, "")).join("\n")}\n`);
  await rm(apt, { recursive: true });
  progress(`unpacked in ${secondsSince(begunAt)} s`);
  return root;
}

/** A package in apt's record of what is installed, which provides all these names in a version that is new enough for everything. */
const takenForInstalled = (names: readonly string[]): string => {
  const provides = [...new Set(names)].map((name) => `${name} (= 999:1)`).join(", ");
  return `Package: herald-leaves-out
Status: install ok installed
Version: 1
Architecture: all
Maintainer: none
Description: none
Provides: ${provides}
`;
};

/** The machine's list of installed packages without some of them, so that apt downloads those although they are installed. */
export const withoutPackages = (status: string, packages: readonly string[]): string =>
  status
    .split("\n\n")
    .filter((entry) => !packages.includes(/^Package: (.+)$/m.exec(entry)?.[1] ?? ""))
    .join("\n\n");

/** The site that the machine's own apt uses, because its mirror or proxy is known to work. */
export async function debianSite(env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await runCommand("apt-get", ["indextargets", "--format", "$(SITE)", "Created-By: Packages"], {
    env,
    timeoutMs: 15_000,
  });
  const sites = stdout.split("\n").filter(Boolean);
  const site = sites.find((one) => one.includes("debian") && !one.includes("security"));
  if (!site) throw new Error("apt-get names no Debian site in its sources, and packages come from nowhere else");
  return site;
}

/** Files that Herald does not need: documentation, translations, and bitcode that only a JIT would read. */
const leftOut = ["./usr/share/doc", "./usr/share/locale", "./usr/share/man", "*/bitcode/*"];

/** Uses a shell's pipe: Node would connect the two with a socket, which tar closes before its writer is done. */
const unpackScript = 'archive=$1; shift; dpkg-deb --fsys-tarfile "$archive" | tar -x "$@"';

/** Unpacks one package's files into the root without running its scripts. */
async function unpackDeb(
  archive: string,
  root: string,
  { env, leaveOut }: { env: NodeJS.ProcessEnv; leaveOut: readonly string[] },
): Promise<void> {
  const flags = [
    "-C",
    root,
    "--no-same-owner",
    "--keep-directory-symlink",
    ...[...leftOut, ...leaveOut].map((path) => `--exclude=${path}`),
  ];
  const result = await runCommand("sh", ["-c", unpackScript, "unpack", archive, ...flags], { env, timeoutMs: 120_000 });
  if (!result.ok) throw new Error(`unpacking ${archive}: ${result.why}`);
}

const triplets: Partial<Record<NodeJS.Architecture, { triplet: string; loader: string }>> = {
  x64: { triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  arm64: { triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

/** The library folder of this machine's architecture, relative to the root. */
const libraryFolder = (): string => join("usr/lib", platform().triplet);

/**
 * Replaces a program by a script that runs it with the root's own loader and libraries, because it was linked against a newer C library
 * than this machine's. The script locates the root relative to itself, because the root may move. `libraries` are further folders of the
 * root.
 */
export async function wrapProgram(root: string, program: string, libraries: readonly string[] = []): Promise<void> {
  const depth = program.split("/").length - 1;
  const path = join(root, program);
  await rename(path, `${path}.bin`);
  const folders = [libraryFolder(), ...libraries].map((folder) => `$root/${folder}`).join(":");
  const script = `#!/bin/sh
self=$(readlink -f "$0")
root=$(cd "$(dirname "$self")${"/..".repeat(depth)}" && pwd -P)
exec "$root/${libraryFolder()}/${platform().loader}" --library-path "${folders}" --argv0 "$self" "$self.bin" "$@"
`;
  await writeFile(path, script, { mode: 0o755 });
}

/** Sub-folders of the library folder that hold a library each program needs, such as the variants of BLAS. */
export async function librarySubfolders(root: string, names: readonly string[]): Promise<string[]> {
  const present = await readdir(join(root, libraryFolder()));
  return names.filter((name) => present.includes(name)).map((name) => join(libraryFolder(), name));
}

function platform(): { triplet: string; loader: string } {
  const known = triplets[process.arch];
  if (!known) throw new Error(`Debian packages are not used on ${process.arch}`);
  return known;
}
