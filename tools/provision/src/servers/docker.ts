import { runCommand } from "../processes/run-command.ts";
import { type NatsPasswords, passwordEnvironment } from "./nats-users.ts";

/** A service that Docker runs for this process. */
export type DockerService = { url: string; stop: () => Promise<unknown> };

/** How the caller uses Docker: tests pass testcontainers, `npm start` passes the compose file. `start` throws when it fails. */
export type DockerStarter = { what: string; start: (progress: (line: string) => void) => Promise<DockerService> };

/** Docker is often installed without a running engine, so Herald queries the engine with a short timeout. */
const engineAnswersWithinMs = 4_000;

/** The engine's version, or why no engine runs. */
export async function dockerEngine(env: NodeJS.ProcessEnv): Promise<{ version: string } | { why: string }> {
  const { ok, stdout, why } = await runCommand("docker", ["version", "--format", "{{.Server.Version}}"], {
    env,
    timeoutMs: engineAnswersWithinMs,
  });
  return ok && stdout.trim() ? { version: stdout.trim() } : { why: why || "docker names no engine" };
}

const composeFile = "tools/provision/docker-compose.yml";
/** Not the project name of a Herald that runs in containers. */
const composeProject = "herald-start";
/** With an unreachable registry `docker pull` prints nothing for minutes. Otherwise it shows progress at once. */
const pullSaysSomethingWithinMs = 10_000;
const pullTimeoutMs = 600_000;
const upTimeoutMs = 120_000;

export type ComposeSettings = {
  /** The repository's root. */
  root: string;
  env: NodeJS.ProcessEnv;
  natsPort: number;
  mongoPort: number;
  natsPasswords: NatsPasswords;
};

/** Starts one service of the compose file on the given port of this machine. Its data stays in a volume. */
export function composeStarter(service: "nats" | "mongo", settings: ComposeSettings): DockerStarter {
  const url =
    service === "nats" ? `nats://127.0.0.1:${settings.natsPort}` : `mongodb://127.0.0.1:${settings.mongoPort}/`;
  return {
    what: `docker compose starts ${service}`,
    start: async (progress) => {
      await pull(service, settings, progress);
      const up = await compose(["up", "--detach", "--wait", service], settings);
      const taken = /already (?:allocated|in use)/.test(up.why)
        ? `: set HERALD_${service.toUpperCase()}_PORT to another port`
        : "";
      if (!up.ok) throw new Error(`docker compose up ${service}: ${up.why}${taken}`);
      return { url, stop: () => compose(["stop", service], settings) };
    },
  };
}

/** Removes the containers and their data. */
export async function removeComposeData(settings: ComposeSettings): Promise<void> {
  await compose(["down", "--volumes"], settings);
}

async function pull(service: string, settings: ComposeSettings, progress: (line: string) => void): Promise<void> {
  const images = await compose(["config", "--images", service], settings);
  const image = images.stdout.trim().split("\n").at(-1);
  if (!images.ok || !image) throw new Error(`docker compose does not work here: ${images.why}`);
  const { env } = settings;
  const present = await runCommand("docker", ["image", "inspect", image], { env, timeoutMs: 10_000 });
  if (present.ok) return;
  progress(`docker pull ${image}`);
  const pulled = await runCommand("docker", ["pull", image], {
    env,
    timeoutMs: pullTimeoutMs,
    firstOutputWithinMs: pullSaysSomethingWithinMs,
  });
  if (!pulled.ok) throw new Error(`the image ${image} is out of reach: ${pulled.why}`);
}

function compose(args: string[], settings: ComposeSettings) {
  const env = {
    ...settings.env,
    HERALD_NATS_PORT: String(settings.natsPort),
    HERALD_MONGO_PORT: String(settings.mongoPort),
    ...passwordEnvironment(settings.natsPasswords),
  };
  return runCommand("docker", ["compose", "--file", composeFile, "--project-name", composeProject, ...args], {
    env,
    cwd: settings.root,
    timeoutMs: upTimeoutMs,
  });
}
