import type { Logger } from "@herald/kit";
import { createService, type Service } from "@herald/service";
import { assemble, type Overrides } from "./assemble.ts";
import type { RegistryConfig } from "./config.ts";

/** Pages that are being published get the greater part of a stop. */
const drainMs = 20_000;

/** Registry, put together. */
export const createApp = (
  config: RegistryConfig,
  { log, ...overrides }: Overrides & { readonly log?: Logger } = {},
): Service =>
  createService({
    name: "registry",
    config,
    host: config.HERALD_REGISTRY_HOST,
    port: config.HERALD_REGISTRY_PORT,
    metricsPort: config.HERALD_REGISTRY_METRICS_PORT,
    database: config.HERALD_REGISTRY_DATABASE,
    drainMs,
    log,
    assemble: (ground) =>
      assemble(config, { ...ground, retentionEveryMs: config.HERALD_RETENTION_INTERVAL, ...overrides }),
  });
