import { homedir } from "node:os";
import { join } from "node:path";
import { findBinary, runCommand, secondsSince } from "../processes/run-command.ts";

/** An install takes half a minute on two cores. After ten minutes it hangs. */
export const installTimeoutMs = 600_000;

/** The places in which Herald looks for Go, for error messages. */
export const goAccepted = "Go (https://go.dev/dl) on PATH, in $GOROOT, /usr/local/go or ~/go";

/**
 * Finds the `go` command on PATH, else in GOROOT or, without GOROOT, in the default folders of Go's installers, which do not change PATH
 * before the next login. Throws when Go is missing.
 */
export async function findGo(env: NodeJS.ProcessEnv): Promise<string> {
  const { PATH = "", GOROOT, HOME = homedir() } = env;
  const folders = GOROOT ? [join(GOROOT, "bin")] : ["/usr/local/go/bin", join(HOME, "go/bin")];
  const go = (await findBinary("go", PATH)) ?? (await findBinary("go", folders.join(":")));
  if (!go) throw new Error(`go is neither on PATH nor in ${folders.join(" or ")}`);
  return go;
}

type Fetch = {
  env: NodeJS.ProcessEnv;
  progress: (line: string) => void;
  /** Variables that the program's makers set when they link it: name and text. */
  linked?: Readonly<Record<string, string>>;
};

/** Downloads and compiles a pinned Go program into the folder. Throws with the reason if Go is missing or fails. */
export async function goInstall(module: string, folder: string, { env, progress, linked = {} }: Fetch): Promise<void> {
  const go = await findGo(env);
  const goEnv = { ...env, HOME: env.HOME || homedir(), GOBIN: folder, CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false" };
  const run = async (...args: string[]) => {
    const begunAt = Date.now();
    const { ok, why } = await runCommand(go, ["install", ...args, module], { env: goEnv, timeoutMs: installTimeoutMs });
    if (!ok) throw new Error(`go install ${module}: ${why}`);
    return secondsSince(begunAt);
  };
  // `-n` loads all sources, and compiles nothing.
  progress(`downloaded its sources in ${await run("-n")} s; compiling`);
  const flags = ["-s", "-w", ...Object.entries(linked).map(([name, text]) => `-X ${name}=${text}`)];
  progress(`compiled in ${await run(`-ldflags=${flags.join(" ")}`)} s`);
}
