import { createService, type Service } from "@herald/service";
import { assemble, type Overrides } from "./assemble.ts";
import type { DispatchConfig } from "./config.ts";

/** A batch whose provider is slow gets the greater part of a stop. */
const drainMs = 25_000;

/** Dispatch, put together. */
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
