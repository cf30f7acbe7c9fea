import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cacheFolder,
  debianSite,
  findBinary,
  provision,
  runCommand,
  startProcess,
  unpackDebianPackages,
  whyNoDebian,
} from "@herald/provision";
import { withMemoryLimit } from "../harness/memory-limit.ts";

const root = join(import.meta.dirname, "../..");
const minimumMajor = 6;
/** Of each process: the compiler takes two. */
const maxGigabytes = 8;
/** The number is the version of this recipe. */
const debianFolder = "swift-debian-1";
/** Of what was compiled by it, before a hash of the sources. */
const builtFolder = "swift-kit-";
/** Parts of Debian's package that compile nothing for this machine: debugger, editor services, other processors. */
const leaveOut = [
  "./usr/libexec/swift/lib/swift_static",
  "*/swift/embedded",
  "*/FrameworkABIBaseline",
  "*/liblldb.so*",
  "*/libsourcekitd*",
  "*/bin/clangd",
  "*/bin/docc",
  "*/bin/lldb*",
  "*/bin/sourcekit-lsp",
];

type Run = (
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
) => Promise<{ code: number | null; output: string }>;

/** The compiled kit and its tests. */
export type Swift = {
  /** Compiles them, and a package that uses the kit. Throws the compiler's errors and warnings. */
  readonly build: () => Promise<void>;
  /** Runs the tests that `build` compiled. Resolves to the exit code and the output. */
  readonly test: (env: Readonly<Record<string, string>>) => ReturnType<Run>;
};

type Command = { readonly command: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv };

const runner =
  ({ command, args: before, env: own }: Command): Run =>
  async (args, env = {}) => {
    const folder = await mkdtemp(join(tmpdir(), "herald-swift-"));
    // A file, because the last lines of a pipe may come after the end.
    const file = join(folder, "output.txt");
    const [program, limited] = withMemoryLimit(maxGigabytes, command, [...before, ...args]);
    const running = await startProcess({
      name: "swift",
      command: program,
      args: limited,
      cwd: root,
      env: { ...own, ...env },
      stopSignal: "SIGKILL",
      stopTimeoutMs: 10_000,
      output: { file },
    });
    const { code } = await running.exited;
    const output = await readFile(file, "utf8");
    await rm(folder, { recursive: true });
    return { code, output };
  };

const buildArgs = ["build", "--build-tests"];
const consumer = "e2e/swift/consumer";

/** `places` of the kit and of the package that uses it: the options that name them. */
const compile = async (run: Run, ...places: readonly (readonly string[])[]): Promise<void> => {
  for (const [index, place] of places.entries()) {
    const { code, output } = await run([...(index === 0 ? buildArgs : ["build"]), ...place]);
    if (code !== 0 || output.includes("warning:")) throw new Error(`swift build ended with ${code}:\n${output}`);
  }
};

/** The `swift` on PATH if it is new enough, else Debian's if `HERALD_SWIFT=trixie` asks for it. Otherwise the reason why there is none. */
export async function findSwift(env: NodeJS.ProcessEnv, progress: (line: string) => void): Promise<Swift | string> {
  const binary = await findBinary("swift", env.PATH);
  if (binary) {
    const { stdout } = await runCommand(binary, ["--version"], { timeoutMs: 60_000 });
    const version = /Swift version (\d+\S*)/.exec(stdout)?.[1];
    const run = runner({ command: binary, args: [], env });
    if (Number.parseInt(version ?? "", 10) >= minimumMajor)
      return {
        build: () => compile(run, [], ["--package-path", join(root, consumer)]),
        test: (own) => run(["test", "--skip-build"], own),
      };
  }
  if (env.HERALD_SWIFT !== "trixie")
    return `swift ${minimumMajor} is not on PATH; HERALD_SWIFT=trixie downloads Debian's (540 MB)`;
  return debianSwift(env, progress);
}

/** In the toolchain's own root, with this repository and the kernel's files mounted where no other process sees them. */
const enter = `root=$1; repository=$2; built=$3; shift 3
mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --bind "$repository" "$root/src" &&
mkdir -p "$root/built" && mount --bind "$built" "$root/built" &&
exec chroot "$root" /usr/libexec/swift/bin/swift "$@"`;

const noDebianSite = (env: NodeJS.ProcessEnv) =>
  debianSite(env).then(
    () => undefined,
    (error: Error) => error.message,
  );

async function debianSwift(env: NodeJS.ProcessEnv, progress: (line: string) => void): Promise<Swift | string> {
  const namespace = ["--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"])];
  const { ok, why } = await runCommand("unshare", [...namespace, "true"], { timeoutMs: 10_000 });
  if (!ok) return `Debian's runs in mounts of its own, and this machine allows none: ${why}`;
  const whyNot = (await whyNoDebian(env)) ?? (await noDebianSite(env));
  if (whyNot) return whyNot;
  const cache = cacheFolder(env);
  const folder = await provision({ cache, name: debianFolder, progress }, async (building) => {
    const say = (line: string) => progress(`Swift: ${line}`);
    const packages = ["swiftlang", "libstdc++-14-dev"];
    const unpacked = await unpackDebianPackages(building, packages, { env, progress: say, suite: "trixie", leaveOut });
    for (const name of ["bin", "lib", "lib64"]) await symlink(`usr/${name}`, join(unpacked, name));
    for (const name of ["proc", "dev", "src", "tmp"]) await mkdir(join(unpacked, name), { recursive: true });
  });
  const libraries = "/usr/libexec/swift/lib/swift/linux:/usr/libexec/swift/lib";
  const runWith = (built: string) =>
    runner({
      command: "unshare",
      args: [...namespace, "sh", "-c", enter, "enter", join(folder, "root"), root, built],
      env: { PATH: "/usr/libexec/swift/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/tmp", LD_LIBRARY_PATH: libraries },
    });
  const inRoot = ["--package-path", "/src", "--scratch-path", "/built", "--disable-sandbox"];
  const name = `${builtFolder}${await hashOfSources(folder)}`;
  let built = "";
  return {
    build: async () => {
      built = await provision({ cache, name, progress }, async (building) => {
        const inConsumer = [
          "--package-path",
          `/src/${consumer}`,
          "--scratch-path",
          "/built/consumer",
          "--disable-sandbox",
        ];
        await compile(runWith(building), inRoot, inConsumer);
        await removeOldBuilds(cache);
      });
      await utimes(built, new Date(), new Date());
    },
    test: (own) => runWith(built)(["test", "--skip-build", ...inRoot], own),
  };
}

/** What is compiled depends on these files of the repository, and on the compiler. */
const sources = ["Package.swift", "kits/swift", "examples/swift", consumer];

const hashOfSources = async (toolchain: string): Promise<string> => {
  const listed = await runCommand("git", ["ls-files", "--cached", "--others", "--exclude-standard", ...sources], {
    cwd: root,
    timeoutMs: 60_000,
  });
  if (!listed.ok) throw new Error(`git ls-files: ${listed.why}`);
  const hash = createHash("sha256").update(await readFile(join(toolchain, "packages.txt")));
  hash.update(buildArgs.join(" "));
  for (const file of listed.stdout.split("\n").filter((name) => name !== "" && existsSync(join(root, name))))
    hash.update(`\0${file}\0`).update(await readFile(join(root, file)));
  return hash.digest("hex").slice(0, 16);
};

const dayMs = 86_400_000;

/** Another run may still use one that was used within a day. */
const removeOldBuilds = async (cache: string): Promise<void> => {
  for (const name of await readdir(cache)) {
    if (!new RegExp(`^${builtFolder}[0-9a-f]+$`).test(name)) continue;
    const { mtimeMs } = await stat(join(cache, name));
    if (Date.now() - mtimeMs > dayMs) await rm(join(cache, name), { recursive: true, force: true });
  }
};
