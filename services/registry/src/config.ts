import {
  httpConfig,
  logConfig,
  mongoConfig,
  natsConfig,
  retentionConfig,
  telemetryConfig,
  variables,
} from "@herald/kit";
import { z } from "zod";

/** The environment variables of registry. */
export const RegistryConfig = z.object({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...retentionConfig,
  ...httpConfig("registry", { port: 8081, metricsPort: 9081 }),
  /** Databases that share a server, as tests do, are told apart by it. */
  HERALD_REGISTRY_DATABASE: variables.text().default("herald_registry"),
});
export type RegistryConfig = z.infer<typeof RegistryConfig>;
