import { createService, type Service } from "@herald/service";
import { assemble, type Overrides } from "./assemble.ts";
import { type DispatchConfig, drainMs } from "./config.ts";

/** The service: configuration in, start and stop out. */
export const createApp = (config: DispatchConfig, overrides: Overrides = {}): Service =>
  createService({
    name: "dispatch",
    config,
    host: config.HERALD_DISPATCH_HOST,
    port: config.HERALD_DISPATCH_PORT,
    metricsPort: config.HERALD_DISPATCH_METRICS_PORT,
    database: config.HERALD_DISPATCH_DATABASE,
    drainMs,
    assemble: (ground) => assemble(config, { ...ground, ...overrides }),
  });
