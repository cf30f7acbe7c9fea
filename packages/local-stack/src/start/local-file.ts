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
  /** The site of `examples/web`. */
  example: string;
  /** With a broker that was given by its URL, the users are what the environment gave, or none. */
  nats: { url: string; user?: string; password?: string; analytics: AnalyticsAccess };
  mongo: { url: string };
  /** Process ids of what was started here; they change when a part is started again. */
  processes: Record<string, number>;
};

/** The file of one start. Parts may die and return at the same moment: writes follow one another, and none follows the removal. */
export function localFile(dataDir: string): {
  write: (content: LocalFile) => Promise<void>;
  remove: () => Promise<void>;
} {
  const path = join(dataDir, "local.json");
  let last: Promise<void> = Promise.resolve();
  let removed = false;
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    last = last.catch(() => {}).then(work);
    return last;
  };
  return {
    /** Whole or not at all: scripts wait for it to appear. */
    write: (content) =>
      inTurn(async () => {
        if (removed) return;
        await writeFile(`${path}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
        await rename(`${path}.new`, path);
      }),
    remove: () => {
      removed = true;
      return inTurn(() => rm(path, { force: true }));
    },
  };
}
