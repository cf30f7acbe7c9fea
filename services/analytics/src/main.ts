import { readConfig } from "@herald/kit";
import { runDatabaseService } from "@herald/service";
import { createApp } from "./app.ts";
import { AnalyticsConfig } from "./config.ts";

await runDatabaseService(
  "analytics",
  () => readConfig(AnalyticsConfig, process.env),
  createApp,
  (config) => [config.HERALD_ANALYTICS_MASTER_KEYS],
);
