import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinary } from "../processes/find-binary.ts";
import { runCommand } from "../processes/run-command.ts";
import { exists } from "./provision.ts";
import { unpackDeb } from "./unpack-deb.ts";

/** The suite that has PostgreSQL 18 with DocumentDB and a nats-server that is new enough. */
const debianSuite = "forky";
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const aptTimeoutMs = 600_000;

/** Why this machine cannot unpack Debian packages, or nothing when it can. */
export async function whyNoDebian(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const tool of ["apt-get", "dpkg-deb", "tar"]) {
    if (!(await findBinary(tool, env.PATH))) return `${tool} is not installed`;
  }
  return undefined;
}

/**
 * Downloads packages with all they depend on from Debian's next suite and unpacks them into `<folder>/root`, with an apt
 * state of its own: nothing is installed into the system and no root is needed. Signatures are verified with the
 * machine's own keyring. The packages' names and versions are recorded in `<folder>/packages.txt`. With `ownSuite` they
 * come from the machine's own sources, without what the machine has installed: such programs need no loader of their own.
 */
export async function unpackDebianPackages(
  folder: string,
  packages: readonly string[],
  options: { env: NodeJS.ProcessEnv; progress: (line: string) => void; ownSuite?: boolean },
): Promise<string> {
  const { env, progress, ownSuite = false } = options;
  const from = ownSuite ? "this machine's sources" : `Debian ${debianSuite}`;
  const apt = join(folder, "apt");
  const archives = join(apt, "cache", "archives");
  await mkdir(join(apt, "state", "lists", "partial"), { recursive: true });
  await mkdir(join(archives, "partial"), { recursive: true });
  await writeFile(join(apt, "status"), "");
  const signedBy = (await exists(debianKeyring)) ? ` [signed-by=${debianKeyring}]` : "";
  await writeFile(join(apt, "sources.list"), `deb${signedBy} ${await debianSite(env)} ${debianSuite} main\n`);

  const nextSuite = {
    "Dir::State::status": join(apt, "status"),
    "Dir::Etc::sourcelist": join(apt, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
  };
  const settings = {
    "Dir::State": join(apt, "state"),
    "Dir::Cache": join(apt, "cache"),
    ...(ownSuite ? { "Dir::State::status": "/var/lib/dpkg/status" } : nextSuite),
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "", // the folder is private to this user, so apt's own user could not write there
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    "Acquire::http::Timeout": "15",
    "Acquire::https::Timeout": "15",
    // What a system's image sets to throw its archives away would throw these away before they are unpacked.
    "Dir::Cache::pkgcache": "pkgcache.bin",
    "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const run = async (args: string[]) => {
    const result = await runCommand("apt-get", [...flags, ...args], {
      env: { ...env, LC_ALL: "C" },
      timeoutMs: aptTimeoutMs,
    });
    if (!result.ok) throw new Error(`apt-get ${args[0]} (${from}): ${result.why}`);
  };
  // Of the machine's own sources some may be out of reach that have nothing to do with these packages.
  await run(ownSuite ? ["update"] : ["update", "--error-on=any"]);
  progress(`downloading ${packages.join(" and ")} with dependencies from ${from}`);
  await run(["install", "--download-only", "--yes", ...packages]);

  const root = join(folder, "root");
  await mkdir(root);
  const debs = (await readdir(archives)).filter((name) => name.endsWith(".deb")).sort();
  progress(`unpacking ${debs.length} packages`);
  for (const deb of debs) await unpackDeb(join(archives, deb), root, env);
  await writeFile(join(folder, "packages.txt"), `${debs.map((deb) => deb.replace(/\.deb$/, "")).join("\n")}\n`);
  await rm(apt, { recursive: true });
  return root;
}

/** The site that the machine's own apt uses, so that a mirror or a proxy that works there works here. */
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
