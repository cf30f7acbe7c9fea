import type { Answer } from "./chain.ts";
import { runCommand } from "./processes/run-command.ts";

/** Something that Docker runs for us. */
export type DockerService = { url: string; stop: () => Promise<void> };

/** How this caller uses Docker: tests pass testcontainers, `npm start` the compose file. It throws when it cannot. */
export type DockerStarter = { what: string; start: (progress: (line: string) => void) => Promise<DockerService> };

/** Docker being installed without a running engine is normal, so the question is what the engine says, and soon. */
const engineAnswersWithinMs = 4_000;

/** The engine's version, or why there is none. */
export async function dockerEngine(env: NodeJS.ProcessEnv): Promise<{ version: string } | { why: string }> {
  const { ok, stdout, why } = await runCommand("docker", ["version", "--format", "{{.Server.Version}}"], {
    env,
    timeoutMs: engineAnswersWithinMs,
  });
  return ok && stdout.trim() ? { version: stdout.trim() } : { why: why || "docker names no engine" };
}

/** The chain's second step. With `onlyTell` nothing is started: the answer says what would be. */
export async function askDocker(
  starter: DockerStarter | undefined,
  options: { env: NodeJS.ProcessEnv; progress: (line: string) => void; onlyTell: boolean },
): Promise<Answer<DockerService>> {
  if (!starter) return { why: "Docker is not used here" };
  const engine = await dockerEngine(options.env);
  if ("why" in engine) return { why: `no Docker engine: ${engine.why}` };
  const why = `Docker ${engine.version} answers: ${starter.what}`;
  if (options.onlyTell) return { found: { url: "", stop: async () => {} }, why };
  try {
    return { found: await starter.start(options.progress), why };
  } catch (error) {
    return { why: `Docker ${engine.version} answers, but ${error instanceof Error ? error.message : String(error)}` };
  }
}
