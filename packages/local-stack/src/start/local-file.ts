import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DemoProject, SimulatorAddresses } from "./demo-project.ts";
import type { AnalyticsAccess } from "./nats-users.ts";

/** `.herald/local.json`: where everything is, for scripts. It exists while Herald is ready, and not otherwise. */
export type LocalFile = {
  gateway: string;
  adminToken: string;
  project: DemoProject;
  simulators: SimulatorAddresses;
  /** With a broker that was given by its URL, the users are what the environment gave, or none. */
  nats: { url: string; user?: string; password?: string; analytics: AnalyticsAccess };
  mongo: { url: string };
  /** Process ids of what was started here; they change when a part is started again. */
  processes: Record<string, number>;
};

const pathIn = (dataDir: string) => join(dataDir, "local.json");

/** Whole or not at all: scripts wait for it to appear. */
export async function writeLocalFile(dataDir: string, content: LocalFile): Promise<string> {
  const path = pathIn(dataDir);
  await writeFile(`${path}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return path;
}

export const removeLocalFile = (dataDir: string): Promise<void> => rm(pathIn(dataDir), { force: true });
