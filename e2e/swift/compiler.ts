import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
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
} from "@herald/local-stack";
import { withMemoryLimit } from "../harness/memory-limit.ts";

const root = join(import.meta.dirname, "../..");
const minimumMajor = 6;
/** Of each process: the compiler takes two. */
const maxGigabytes = 8;
/** The number is the version of this recipe. */
const debianFolder = "swift-debian-1";
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

/** Runs a program of the Swift toolchain on this repository. */
export type Swift = {
  readonly version: string;
  /** Resolves to the exit code and the output. */
  readonly run: (
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ) => Promise<{ code: number | null; output: string }>;
};

type Command = { readonly command: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv };

const runner =
  ({ command, args: before, env: own }: Command): Swift["run"] =>
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

/** The `swift` on PATH if it is new enough, else Debian's if `HERALD_SWIFT=trixie` asks for it. Otherwise the reason why there is none. */
export async function findSwift(env: NodeJS.ProcessEnv, progress: (line: string) => void): Promise<Swift | string> {
  const binary = await findBinary("swift", env.PATH);
  if (binary) {
    const { stdout } = await runCommand(binary, ["--version"], { timeoutMs: 60_000 });
    const version = /Swift version (\d+\S*)/.exec(stdout)?.[1];
    if (Number.parseInt(version ?? "", 10) >= minimumMajor)
      return { version: version ?? "", run: runner({ command: binary, args: [], env }) };
  }
  if (env.HERALD_SWIFT !== "trixie")
    return `swift ${minimumMajor} is not on PATH; HERALD_SWIFT=trixie downloads Debian's (540 MB)`;
  return debianSwift(env, progress);
}

/** In the toolchain's own root, with this repository and the kernel's files mounted where no other process sees them. */
const enter = `root=$1; repository=$2; shift 2
mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --bind "$repository" "$root/src" &&
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
  const folder = await provision({ cache: cacheFolder(env), name: debianFolder, progress }, async (building) => {
    const say = (line: string) => progress(`Swift: ${line}`);
    const packages = ["swiftlang", "libstdc++-14-dev"];
    const unpacked = await unpackDebianPackages(building, packages, { env, progress: say, suite: "trixie", leaveOut });
    for (const name of ["bin", "lib", "lib64"]) await symlink(`usr/${name}`, join(unpacked, name));
    for (const name of ["proc", "dev", "src", "tmp"]) await mkdir(join(unpacked, name), { recursive: true });
  });
  const libraries = "/usr/libexec/swift/lib/swift/linux:/usr/libexec/swift/lib";
  const run = runner({
    command: "unshare",
    args: [...namespace, "sh", "-c", enter, "enter", join(folder, "root"), root],
    env: { PATH: "/usr/libexec/swift/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/tmp", LD_LIBRARY_PATH: libraries },
  });
  // Its own folder for what is compiled: paths in it differ from those of another compiler.
  const inRoot = ["--package-path", "/src", "--scratch-path", "/src/.build/trixie", "--disable-sandbox"];
  return { version: "6.0.3", run: ([command = "", ...args], own) => run([command, ...inRoot, ...args], own) };
}
