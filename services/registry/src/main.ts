import { readConfig } from "@herald/kit";
import { runDatabaseService } from "@herald/service";
import { createApp } from "./app.ts";
import { RegistryConfig } from "./config.ts";

await runDatabaseService(
  "registry",
  () => readConfig(RegistryConfig, process.env),
  createApp,
  (config) => [config.HERALD_REGISTRY_MASTER_KEYS],
);
