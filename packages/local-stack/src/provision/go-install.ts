import { homedir } from "node:os";
import { findBinary } from "../processes/find-binary.ts";
import { runCommand } from "../processes/run-command.ts";

/** Downloading and compiling a server takes about half a minute on two cores; ten minutes is a machine that hangs. */
const goInstallTimeoutMs = 600_000;

/** Whether Go is there to compile with. */
export const findGo = (env: NodeJS.ProcessEnv): Promise<string | undefined> => findBinary("go", env.PATH);

/** Compiles a pinned Go program into the folder. The reason comes back when Go is missing or fails. */
export async function goInstall(
  module: string,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<{ ok: boolean; why: string }> {
  const go = await findGo(env);
  if (!go) return { ok: false, why: "go is not installed" };
  const goEnv = { ...env, HOME: env.HOME || homedir(), GOBIN: folder, CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false" };
  const { ok, why } = await runCommand(go, ["install", module], { env: goEnv, timeoutMs: goInstallTimeoutMs });
  return { ok, why: ok ? "" : `go install ${module}: ${why}` };
}
