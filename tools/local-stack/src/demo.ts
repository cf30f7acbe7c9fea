import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureDemoProject, simulatorAddresses } from "./start/demo-project.ts";
import { printedCommands } from "./start/printed-commands.ts";
import { makeProviderKeys, type ProviderKeys } from "./start/provider-keys.ts";

/** `docker compose run --rm demo`: makes a project that sends to the simulators, and prints commands for a first push. Repeatable. */

const {
  HERALD_ADMIN_TOKEN: adminToken = "",
  HERALD_DEMO_ADMIN = "",
  HERALD_DEMO_GATEWAY = "",
  HERALD_DEMO_SIMULATORS = "",
  HERALD_DEMO_CONTROL: control = "http://simulators:8090",
  HERALD_DEMO_DATA_DIR: dataDir = "/data",
} = process.env;

/** Makes the keys once and keeps them, because a provider's key should not change without need. */
const keepKeys = async (): Promise<ProviderKeys> => {
  const file = join(dataDir, "provider-keys.json");
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept);
  const keys = makeProviderKeys();
  await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
  return keys;
};

const explain = (problem: string): string =>
  problem.includes("HERALD_DISPATCH_CUSTOM_ENDPOINTS")
    ? `${problem}\nThe simulators need that: run infra/init --simulators, then docker compose up -d --wait.`
    : problem;

try {
  const project = await ensureDemoProject({
    dataDir,
    gateway: HERALD_DEMO_ADMIN,
    adminToken,
    keys: await keepKeys(),
    simulators: await simulatorAddresses(control),
  });
  const commands = printedCommands({ gateway: HERALD_DEMO_GATEWAY, control: HERALD_DEMO_SIMULATORS, project });
  console.log(`Project ${project.id}, token ${project.token}\nYour first push:`);
  for (const { does, command } of commands) console.log(`\n# ${does}\n${command}`);
} catch (error) {
  const problem = error instanceof Error ? `${error.message}${error.cause ? ` (${error.cause})` : ""}` : String(error);
  console.error(explain(problem));
  process.exitCode = 1;
}
