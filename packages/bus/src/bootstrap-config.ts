import { buckets, streams } from "@herald/contracts";
import { natsConfig, variables } from "@herald/kit";
import { z } from "zod";

const mebibyte = 1_048_576;

/** What all streams and buckets may take together as they are declared. */
export const declaredBytes = [...Object.values(streams), ...Object.values(buckets)].reduce(
  (sum, { maxBytes }) => sum + maxBytes,
  0,
);

/** The environment variables of the bootstrap step. */
export const BootstrapConfig = z.object({
  ...natsConfig,
  /** Copies of every stream: 3 where three brokers run, as in production. */
  HERALD_NATS_REPLICAS: variables.choice("1", "3").default("1"),
  /** What all streams may take of a broker's disk together; each gets its share of it. */
  HERALD_NATS_STORAGE: variables.bytes({ min: 64 * mebibyte }).default(declaredBytes),
});
