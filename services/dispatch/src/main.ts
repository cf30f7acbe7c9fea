import { readConfig } from "@herald/kit";
import { runDatabaseService } from "@herald/service";
import { createApp } from "./app.ts";
import { DispatchConfig } from "./config.ts";

await runDatabaseService(
  "dispatch",
  () => readConfig(DispatchConfig, process.env),
  createApp,
  (config) => [config.HERALD_DISPATCH_MASTER_KEYS, config.HERALD_OPEN_KEYS],
);
