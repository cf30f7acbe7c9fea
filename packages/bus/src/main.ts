import { createLogger, readConfig, runBackupCommand, runService } from "@herald/kit";
import type { z } from "zod";
import { backUpStreams, restoreStreams } from "./backup-streams.ts";
import { closeBus, connectBus, serviceAccess } from "./connect.ts";
import { BootstrapConfig, ensureStreams, whyNotMade } from "./ensure-streams.ts";
import { declaredBytes } from "./stream-sizes.ts";

const shapeOf = ({
  HERALD_NATS_REPLICAS: replicas,
  HERALD_NATS_STORAGE: storage,
}: z.infer<typeof BootstrapConfig>) => ({
  replicas: replicas === "3" ? (3 as const) : (1 as const),
  sizeFactor: storage / declaredBytes,
});

/** Called with `backup` or `restore`, as a user of NATS that may do both. */
await runBackupCommand("bus", () => {
  const config = readConfig(BootstrapConfig, process.env);
  const log = createLogger({ service: "backup", level: "warn", destination: process.stderr });
  const connect = () => connectBus({ ...serviceAccess(config, "bootstrap"), inboxPrefix: undefined, log });
  return {
    part: "broker",
    keys: [],
    read: async function* () {
      const bus = await connect();
      yield* backUpStreams(bus);
      await closeBus(bus);
    },
    restore: async (frames, { replace }) => {
      const bus = await connect();
      const count = await restoreStreams(bus, frames, { ...shapeOf(config), replace });
      await closeBus(bus);
      return `${count} streams`;
    },
  };
});

/** Creates or updates streams, buckets and durables, then exits: with 0 if all match their declaration. */
await runService("bootstrap", () => {
  const config = readConfig(BootstrapConfig, process.env);
  const log = createLogger({ service: "bootstrap", level: "info" });
  return {
    start: async () => {
      const bus = await connectBus({ ...serviceAccess(config, "bootstrap"), log });
      const { created, updated, unchanged, problems } = await ensureStreams(bus, shapeOf(config)).catch(
        (cause: unknown) => {
          throw new Error(whyNotMade(cause), { cause });
        },
      );
      await closeBus(bus);
      log.info({ created, updated, unchanged: unchanged.length }, "streams, buckets and durables are there");
      for (const problem of problems) log.error({ problem }, "not as declared");
      process.exit(problems.length === 0 ? 0 : 1);
    },
    stop: async () => {},
  };
});
