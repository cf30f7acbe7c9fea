import type { DockerService, DockerStarter } from "./docker.ts";
import { runCommand } from "./processes/run-command.ts";
import { type NatsPasswords, passwordEnvironment } from "./start/nats-users.ts";

const composeFile = "packages/local-stack/docker-compose.yml";
/** Apart from a Herald that runs in containers. */
const composeProject = "herald-start";
/** A registry that is out of reach says nothing for minutes; one that is in reach shows progress at once. */
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

/** Starts one service of the project's compose file on the given port of this machine; its data stays in a volume. */
export function composeStarter(service: "nats" | "mongo", settings: ComposeSettings): DockerStarter {
  const url =
    service === "nats" ? `nats://127.0.0.1:${settings.natsPort}` : `mongodb://127.0.0.1:${settings.mongoPort}/`;
  return {
    what: `docker compose starts ${service}`,
    start: async (progress): Promise<DockerService> => {
      await pull(service, settings, progress);
      const up = await compose(["up", "--detach", "--wait", service], settings, upTimeoutMs);
      if (!up.ok) throw new Error(`docker compose up ${service}: ${up.why}`);
      return {
        url,
        stop: async () => {
          await compose(["stop", service], settings, upTimeoutMs);
        },
      };
    },
  };
}

/** Removes the containers and their data. */
export async function removeComposeData(settings: ComposeSettings): Promise<void> {
  await compose(["down", "--volumes"], settings, upTimeoutMs);
}

async function pull(service: string, settings: ComposeSettings, progress: (line: string) => void): Promise<void> {
  const images = await compose(["config", "--images", service], settings, upTimeoutMs);
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

function compose(args: string[], settings: ComposeSettings, timeoutMs: number) {
  const env = {
    ...settings.env,
    HERALD_NATS_PORT: String(settings.natsPort),
    HERALD_MONGO_PORT: String(settings.mongoPort),
    ...passwordEnvironment(settings.natsPasswords),
  };
  return runCommand("docker", ["compose", "--file", composeFile, "--project-name", composeProject, ...args], {
    env,
    cwd: settings.root,
    timeoutMs,
  });
}
