import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, startMongo } from "@herald/local-stack";
import { type BrokerSource, findBrokerSource, startBroker } from "@herald/testing";
import { type System, type SystemOptions, startSystem } from "../harness/system.ts";
import type { Stage } from "./row.ts";

/** The resources that all rows share, and the lanes in which rows run. Each lane keeps a system. */
export async function openStages({ long, older }: Pick<Stage, "long" | "older">, say: (line: string) => void) {
  const folders: string[] = [];
  const folder = async () => {
    const made = await mkdtemp(join(tmpdir(), "herald-faults-"));
    removeAtExit(made);
    folders.push(made);
    return made;
  };
  const source: BrokerSource = await findBrokerSource(say);
  if (source.kind === "shared")
    throw new Error("the broker is broken here, so it must be our own: unset HERALD_NATS_URL");
  const mongo = await startMongo({ dataDir: await folder(), port: 0, durable: false, env: process.env, progress: say });
  const lanes: System[] = [];

  const begin = (options: SystemOptions = {}) =>
    startSystem({
      mongoUrl: mongo.url,
      broker: () => startBroker({ syncAlways: true }, source),
      ...options,
    });

  return {
    /** The stages of a lane, one after another, and the log of its last system. */
    lane() {
      let shared: Promise<System> | undefined;
      let last: System | undefined;
      const run = async <Result>(work: (stage: Stage) => Promise<Result>): Promise<Result> => {
        const closing: (() => Promise<unknown>)[] = [];
        const stage: Stage = {
          long,
          older,
          brokerSource: source,
          shared: () => {
            shared ??= begin().then((system) => {
              lanes.push(system);
              return system;
            });
            return shared.then((system) => {
              last = system;
              return system;
            });
          },
          start: async (options) => {
            const system = await begin(options);
            closing.push(() => system.stop());
            last = system;
            return system;
          },
          defer: (close) => closing.push(close),
          folder: async () => {
            const made = await folder();
            closing.push(() => rm(made, { recursive: true, force: true }));
            return made;
          },
        };
        try {
          return await work(stage);
        } finally {
          for (const close of closing.reverse())
            await close().catch((error: Error) => say(`closing: ${error.message}`));
        }
      };
      return { run, logs: () => last?.logs };
    },
    async close() {
      await Promise.all(lanes.map((system) => system.stop().catch((error: Error) => say(`closing: ${error.message}`))));
      await mongo.stop();
      await Promise.all(folders.map((one) => rm(one, { recursive: true, force: true })));
    },
  };
}
