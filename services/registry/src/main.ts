import { readConfig, runService } from "@herald/kit";
import { createApp } from "./app.ts";
import { RegistryConfig } from "./config.ts";

await runService("registry", () => createApp(readConfig(RegistryConfig, process.env)));
