import { parseMasterKeys, serviceConfig, variables } from "@herald/kit";
import { z } from "zod";

/** Twice the retention of the event stream, so that an event that is delivered again finds its audit row. */
const minAuditMs = 62 * 86_400_000;

/** The environment variables of registry. */
export const RegistryConfig = z.object({
  ...serviceConfig({ port: 8081, metricsPort: 9081 }),
  /** Encrypts the data keys of identity secrets. Without the right key the secrets are lost. */
  HERALD_REGISTRY_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /** Devices of one project. Ten million are more than one installation is sized for; the limit stops endless registrations before the database is full. */
  HERALD_REGISTRY_QUOTA_DEVICES: variables.integer({ min: 1, max: 1_000_000_000 }).default(10_000_000),
  /**
   * How long audit rows are kept; forever if it is not set. Registry removes the oldest rows and writes a checkpoint, so that the
   * others can still be verified.
   */
  HERALD_REGISTRY_AUDIT_RETENTION: variables.durationMs({ min: minAuditMs }).optional(),
});
export type RegistryConfig = z.infer<typeof RegistryConfig>;
