import { buckets, streams } from "@herald/contracts";
import { createLogger, natsConfig, readConfig, runService, variables } from "@herald/kit";
import { z } from "zod";
import { closeBus, connectBus } from "./connect.ts";
import { ensureStreams } from "./ensure-streams.ts";
import { serviceAccess } from "./service-access.ts";

const mebibyte = 1_048_576;
const declaredBytes = [...Object.values(streams), ...Object.values(buckets)].reduce(
  (sum, { maxBytes }) => sum + maxBytes,
  0,
);

/** The environment variables of the bootstrap step. */
const BootstrapConfig = z.object({
  ...natsConfig,
  /** Copies of every stream: 3 where three brokers run, as in production. */
  HERALD_NATS_REPLICAS: variables.choice("1", "3").default("1"),
  /** What all streams may take of a broker's disk together; each gets its share of it. */
  HERALD_NATS_STORAGE: variables.bytes({ least: 64 * mebibyte }).default(declaredBytes),
});

/** Creates streams, buckets and durables, or brings them up to date, and ends: 0 when all are as declared. */
await runService("bootstrap", () => {
  const config = readConfig(BootstrapConfig, process.env);
  const log = createLogger({ service: "bootstrap", level: "info" });
  return {
    start: async () => {
      const bus = await connectBus({ ...serviceAccess(config, "bootstrap"), log });
      const { created, updated, unchanged, problems } = await ensureStreams(bus, {
        replicas: config.HERALD_NATS_REPLICAS === "3" ? 3 : 1,
        sizeFactor: config.HERALD_NATS_STORAGE / declaredBytes,
      });
      await closeBus(bus);
      log.info({ created, updated, unchanged: unchanged.length }, "streams, buckets and durables are there");
      for (const problem of problems) log.error({ problem }, "not as declared");
      process.exit(problems.length === 0 ? 0 : 1);
    },
    stop: async () => {},
  };
});
