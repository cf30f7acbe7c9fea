import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureDemoProject, type SimulatorAddresses } from "./start/demo-project.ts";
import { printedCommands } from "./start/printed-commands.ts";
import { makeProviderKeys, type ProviderKeys } from "./start/secrets.ts";

/** `docker compose run --rm demo`: a project whose providers are the simulators, and the commands of a first push. Repeatable. */

const dataDir = "/data";
const {
  HERALD_ADMIN_TOKEN: adminToken = "",
  HERALD_DEMO_ADMIN = "",
  HERALD_DEMO_GATEWAY = "",
  HERALD_DEMO_SIMULATORS = "",
} = process.env;

/** Made once: a provider's key is not changed without need. */
const keepKeys = async (): Promise<ProviderKeys> => {
  const file = join(dataDir, "provider-keys.json");
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept);
  const keys = makeProviderKeys();
  await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
  return keys;
};

const simulatorAddresses = async (): Promise<SimulatorAddresses> => {
  const response = await fetch("http://simulators:8090/info");
  return (await response.json()) as SimulatorAddresses;
};

const explain = (problem: string): string =>
  problem.includes("HERALD_DISPATCH_CUSTOM_ENDPOINTS")
    ? `${problem}\nThe simulators need that: run infra/init --simulators, then docker compose up --build -d --wait.`
    : problem;

try {
  const project = await ensureDemoProject({
    dataDir,
    gateway: HERALD_DEMO_ADMIN,
    adminToken,
    keys: await keepKeys(),
    simulators: await simulatorAddresses(),
  });
  const commands = printedCommands({ gateway: HERALD_DEMO_GATEWAY, control: HERALD_DEMO_SIMULATORS, project });
  console.log(`Project ${project.id}, token ${project.token}\nYour first push:`);
  for (const { does, command } of commands) console.log(`\n# ${does}\n${command}`);
} catch (error) {
  const problem = error instanceof Error ? `${error.message}${error.cause ? ` (${error.cause})` : ""}` : String(error);
  console.error(explain(problem));
  process.exitCode = 1;
}
