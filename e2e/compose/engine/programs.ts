import { copyFile, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, findGo, provision, runCommand, unpackDebianPackages } from "@herald/provision";

/** The newest Compose that supports the engine of Debian 12. */
const composeVersion = "v2.40.3";
const composeModule = `github.com/docker/compose/v2`;
const compileTimeoutMs = 1_800_000;

/** The folders of the engine, its command-line client with Compose, and debootstrap. */
export type EnginePrograms = {
  /** The root folder of the unpacked packages. */
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

/** Unpacks Debian's engine and its tools into the cache, without installing them into the system. */
const fetchEngine = ({ env, progress }: Fetch): Promise<string> =>
  provision({ cache: cacheFolder(env), name: "docker-engine-2", progress }, async (folder) => {
    const root = await unpackDebianPackages(folder, ["docker.io", "iptables", "debootstrap"], {
      env,
      progress: (line) => progress(`Docker engine: ${line}`),
      ownSuite: true,
    });
    // The packages' install scripts would create these links.
    for (const name of ["iptables", "ip6tables"]) {
      const link = join(root, "usr/sbin", name);
      await rm(link, { force: true });
      await symlink("xtables-nft-multi", link);
    }
  });

/** Builds Compose. It has no main package for `go install`, so a copy of its go.mod makes one. */
const fetchCompose = ({ env, progress }: Fetch): Promise<string> =>
  provision({ cache: cacheFolder(env), name: `docker-compose-${composeVersion}`, progress }, async (folder) => {
    const go = await findGo(env);
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

/** Fetches missing programs. Throws the reason if Debian's packages or Go are unavailable. */
export const fetchEnginePrograms = async (options: Fetch): Promise<EnginePrograms> => {
  const engine = await fetchEngine(options);
  const config = await fetchCompose(options);
  const root = join(engine, "root");
  return { root, bin: `${join(root, "usr/bin")}:${join(root, "usr/sbin")}:${join(root, "sbin")}`, config };
};
