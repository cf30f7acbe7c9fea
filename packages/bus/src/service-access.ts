import type { natsConfig } from "@herald/kit";
import type { z } from "zod";
import type { ConnectOptions } from "./connect.ts";
import { type BusService, busUsers } from "./permissions/index.ts";

type NatsConfig = z.infer<z.ZodObject<typeof natsConfig>>;

/** How a part of Herald connects: as the environment says, and with the one inbox that its user may listen to. */
export const serviceAccess = (
  config: NatsConfig,
  part: BusService | "bootstrap",
): Omit<ConnectOptions, "log" | "waitOnFirstConnect"> => ({
  url: config.HERALD_NATS_URL,
  name: `herald-${part}`,
  user: config.HERALD_NATS_USER,
  password: config.HERALD_NATS_PASSWORD,
  nkeySeed: config.HERALD_NATS_NKEY_SEED,
  credsFile: config.HERALD_NATS_CREDS_FILE,
  inboxPrefix: busUsers[part].inboxPrefix,
});
