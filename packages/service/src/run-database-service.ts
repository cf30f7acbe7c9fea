import { databaseOf, type MasterKeys, runBackupCommand, runService } from "@herald/kit";
import { dumpDatabase, loadDump } from "@herald/mongo";
import type { Service, ServiceConfig, ServiceOptions } from "./create-service.ts";

/**
 * The whole of a `main.ts` of a service with a database: runs the service; called with `backup` or `restore`, backs up or restores its
 * database instead. `keysOf`: the rings that encrypt secrets in it.
 */
export const runDatabaseService = async <Config extends ServiceConfig>(
  name: ServiceOptions["name"],
  read: () => Config,
  createApp: (config: Config) => Service,
  keysOf: (config: Config) => readonly MasterKeys[],
): Promise<void> => {
  await runBackupCommand(name, () => {
    const config = read();
    const target = { url: config.HERALD_MONGO_URL, database: databaseOf(config, name) };
    return {
      part: name,
      keys: keysOf(config),
      read: () => dumpDatabase(target),
      restore: async (pages, options) => `${await loadDump(target, pages, options)} documents`,
    };
  });
  await runService(name, () => createApp(read()));
};
