import { copyFile, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, findBinary, provision, runCommand, unpackDebianPackages } from "@herald/local-stack";

/** The newest Compose that talks to the engine of Debian 12. */
const composeVersion = "v2.40.3";
const composeModule = `github.com/docker/compose/v2`;
const compileTimeoutMs = 1_800_000;

/** Where the engine, its command-line client with Compose, and debootstrap are. */
export type EnginePrograms = {
  /** With the packages' files, as they would be below `/`. */
  readonly root: string;
  /** First on the PATH of everything that the engine runs. */
  readonly bin: string;
  /** `DOCKER_CONFIG`: Compose is a plugin in it. */
  readonly config: string;
};

export type Fetch = { readonly env: NodeJS.ProcessEnv; readonly progress: (line: string) => void };

const must = async (
  what: string,
  command: string,
  args: readonly string[],
  options: Parameters<typeof runCommand>[2],
) => {
  const { ok, stdout, why } = await runCommand(command, args, options);
  if (!ok) throw new Error(`${what}: ${why}`);
  return stdout.trim();
};

/** Debian's engine, and what it calls, unpacked into the cache: nothing is installed into the system. */
const fetchEngine = ({ env, progress }: Fetch): Promise<string> =>
  provision({ cache: cacheFolder(env), name: "docker-engine-1", progress }, async (folder) => {
    const root = await unpackDebianPackages(folder, ["docker.io", "iptables", "debootstrap"], {
      env,
      progress: (line) => progress(`Docker engine: ${line}`),
      ownSuite: true,
    });
    // What the packages' scripts do on an installed system.
    for (const name of ["iptables", "ip6tables"]) {
      const link = join(root, "usr/sbin", name);
      await rm(link, { force: true });
      await symlink("xtables-nft-multi", link);
    }
  });

/** Compose has no main package that `go install` could name by version: a copy of its go.mod makes one. */
const fetchCompose = ({ env, progress }: Fetch): Promise<string> =>
  provision({ cache: cacheFolder(env), name: `docker-compose-${composeVersion}`, progress }, async (folder) => {
    const go = await findBinary("go", env.PATH);
    if (go === undefined) throw new Error("Docker Compose is compiled with Go, and go is not installed");
    progress(`Docker Compose ${composeVersion}: compiling, about five minutes, this once`);
    const goEnv = { ...env, CGO_ENABLED: "0", GOFLAGS: "" };
    const downloaded = await must(
      "go mod download",
      go,
      ["mod", "download", "-json", `${composeModule}@${composeVersion}`],
      {
        env: goEnv,
        timeoutMs: compileTimeoutMs,
      },
    );
    const { Dir: sources } = JSON.parse(downloaded) as { Dir: string };
    const modules = join(folder, "modules");
    await mkdir(modules);
    for (const name of ["go.mod", "go.sum"]) await copyFile(join(sources, name), join(modules, name));
    const plugins = join(folder, "cli-plugins");
    await mkdir(plugins);
    const flags = [`-modfile=${join(modules, "go.mod")}`, "-trimpath", "-buildvcs=false"];
    const version = `-s -w -X ${composeModule}/internal.Version=${composeVersion}`;
    await must(
      "go build",
      go,
      ["build", ...flags, "-ldflags", version, "-o", join(plugins, "docker-compose"), "./cmd"],
      { env: goEnv, cwd: sources, timeoutMs: compileTimeoutMs },
    );
    await rm(modules, { recursive: true });
  });

/** Fetches what is missing. Throws with the reason where Debian's packages or Go are not to be had. */
export const fetchEnginePrograms = async (options: Fetch): Promise<EnginePrograms> => {
  const engine = await fetchEngine(options);
  const config = await fetchCompose(options);
  const root = join(engine, "root");
  return { root, bin: `${join(root, "usr/bin")}:${join(root, "usr/sbin")}:${join(root, "sbin")}`, config };
};
