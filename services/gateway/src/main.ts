import { readConfig, runService } from "@herald/kit";
import { createApp } from "./app.ts";
import { GatewayConfig } from "./config.ts";

await runService("gateway", () => createApp(readConfig(GatewayConfig, process.env)));
