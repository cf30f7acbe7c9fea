import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../processes/run-command.ts";
import { giveTo, postgresUser } from "./postgres-user.ts";
import { query, startPostgres } from "./start-postgres.ts";

const initdbTimeoutMs = 120_000;

/** Makes a data folder with the extension in it, so that a start copies it instead of doing this again. */
export async function makeTemplate(options: { bin: string; folder: string; env: NodeJS.ProcessEnv }): Promise<void> {
  const { bin, folder, env } = options;
  await mkdir(folder, { mode: 0o700 });
  const user = await postgresUser(env);
  await giveTo(user, folder);
  const [command = "", ...before] = [...user.before, join(bin, "initdb")];
  const flags = ["-U", "postgres", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync"];
  const initdb = await runCommand(command, [...before, "-D", folder, ...flags], { env, timeoutMs: initdbTimeoutMs });
  if (!initdb.ok) throw new Error(`initdb: ${initdb.why}`);
  const postgres = await startPostgres({
    bin,
    dataFolder: folder,
    logFile: `${folder}.log`,
    durable: false,
    env,
  });
  try {
    await query(
      postgres.socketFolder,
      "CREATE EXTENSION documentdb CASCADE; CREATE EXTENSION documentdb_extended_rum;",
    );
  } finally {
    await postgres.stop();
  }
}
