import { readConfig, runService } from "@herald/kit";
import { createApp } from "./app.ts";
import { DispatchConfig } from "./config.ts";

await runService("dispatch", () => createApp(readConfig(DispatchConfig, process.env)));
