import { createLogger, readConfig, runService } from "@herald/kit";
import { BootstrapConfig, declaredBytes } from "./bootstrap-config.ts";
import { closeBus, connectBus } from "./connect.ts";
import { ensureStreams } from "./ensure-streams.ts";
import { serviceAccess } from "./service-access.ts";
import { whyNotMade } from "./why-not-made.ts";

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
      }).catch((cause: unknown) => {
        throw new Error(whyNotMade(cause), { cause });
      });
      await closeBus(bus);
      log.info({ created, updated, unchanged: unchanged.length }, "streams, buckets and durables are there");
      for (const problem of problems) log.error({ problem }, "not as declared");
      process.exit(problems.length === 0 ? 0 : 1);
    },
    stop: async () => {},
  };
});
