import { parseMasterKeys, serviceConfig, variables } from "@herald/kit";
import { z } from "zod";

/** Twice the retention of the event stream, so that an event that is delivered again finds its audit row. */
const minAuditMs = 62 * 86_400_000;

/** The environment variables of registry. */
export const RegistryConfig = z.object({
  ...serviceConfig({ port: 8081, metricsPort: 9081 }),
  /** Encrypt the data keys of identity secrets. Without the right key the secrets are lost. */
  HERALD_REGISTRY_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  // More than one installation is sized for; stops endless registrations before the database is full.
  /** Devices of one project. */
  HERALD_REGISTRY_QUOTA_DEVICES: variables.integer({ min: 1, max: 1_000_000_000 }).default(10_000_000),
  /** How long audit rows are kept; forever if not set. A checkpoint keeps the others verifiable. */
  HERALD_REGISTRY_AUDIT_RETENTION: variables.durationMs({ min: minAuditMs }).optional(),
});
export type RegistryConfig = z.infer<typeof RegistryConfig>;
