import {
  httpConfig,
  logConfig,
  mongoConfig,
  natsConfig,
  parseMasterKeys,
  retentionConfig,
  telemetryConfig,
  variables,
} from "@herald/kit";
import { z } from "zod";

/** Twice as long as the stream of events: what it repeats must find the row that it has already. */
const minAuditMs = 62 * 86_400_000;

/** The environment variables of registry. */
export const RegistryConfig = z.object({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...retentionConfig,
  ...httpConfig("registry", { port: 8081, metricsPort: 9081 }),
  /** Name of the database: several installations may share a server. */
  HERALD_REGISTRY_DATABASE: variables.text().default("herald_registry"),
  /** Encrypts the data keys of identity secrets. Without the right key the secrets are lost. */
  HERALD_REGISTRY_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /** Devices of one project. Ten million are more than one installation is sized for; the limit stops endless registrations before the database is full. */
  HERALD_REGISTRY_QUOTA_DEVICES: variables.integer({ min: 1, max: 1_000_000_000 }).default(10_000_000),
  /**
   * How long audit rows are kept; absent: forever. Rows are removed from the oldest end, and a checkpoint stays, so that the others can
   * still be checked.
   */
  HERALD_REGISTRY_AUDIT_RETENTION: variables.durationMs({ min: minAuditMs }).optional(),
});
export type RegistryConfig = z.infer<typeof RegistryConfig>;
