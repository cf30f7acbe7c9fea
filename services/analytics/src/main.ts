import { readConfig, runService } from "@herald/kit";
import { createApp } from "./app.ts";
import { AnalyticsConfig } from "./config.ts";

await runService("analytics", () => createApp(readConfig(AnalyticsConfig, process.env)));
