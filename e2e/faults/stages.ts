import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, startMongo } from "@herald/provision";
import { type BrokerSource, expectStatus, findBrokerSource, request, startBroker } from "@herald/testing";
import { type System, type SystemOptions, startSystem } from "../harness/system.ts";
import type { Fixture, Stage } from "./row.ts";

type Opened = {
  readonly fixture: Fixture<unknown>;
  readonly value: unknown;
  /** The newest system that it started, if any. */
  readonly system: () => System | undefined;
  readonly closing: (() => Promise<unknown>)[];
};

/** What the simulators received in earlier rows is of other projects, and every look at it would read it all. */
const reset = async ({ simulators }: System): Promise<void> => {
  await simulators.script([]);
  expectStatus(await request(simulators.url, "DELETE /pushes"), 204);
};

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
  const lanes: (() => Promise<unknown>)[][] = [];

  const begin = (options: SystemOptions = {}) =>
    startSystem({
      mongoUrl: mongo.url,
      broker: () => startBroker({ syncAlways: true }, source),
      ...options,
    });

  const closeAll = async (closing: (() => Promise<unknown>)[]) => {
    for (const close of closing.splice(0).reverse())
      await close().catch((error: Error) => say(`closing: ${error.message}`));
  };

  return {
    /** The stages of a lane, one after another, and the log of its last system. */
    lane() {
      let last: System | undefined;
      const closingLane: (() => Promise<unknown>)[] = [];
      lanes.push(closingLane);
      let shared: Promise<System> | undefined;
      let opened: Opened | undefined;

      const stageOf = (
        closing: (() => Promise<unknown>)[],
        uses: (system: System) => void = () => {},
      ): Omit<Stage, "use"> => ({
        long,
        older,
        brokerSource: source,
        shared: async () => {
          shared ??= begin().then((system) => {
            closingLane.push(() => system.stop());
            return system;
          });
          const system = await shared;
          await reset(system);
          last = system;
          uses(system);
          return system;
        },
        start: async (options) => {
          const system = await begin(options);
          closing.push(() => system.stop());
          last = system;
          uses(system);
          return system;
        },
        defer: (close) => closing.push(close),
        folder: async () => {
          const made = await folder();
          closing.push(() => rm(made, { recursive: true, force: true }));
          return made;
        },
      });
      const open = async <Kept>(fixture: Fixture<Kept>): Promise<Opened> => {
        const closing: (() => Promise<unknown>)[] = [];
        let system: System | undefined;
        const uses = (one: System) => {
          system = one;
        };
        try {
          const value = await fixture.open(stageOf(closing, uses));
          return { fixture, value, system: () => system, closing };
        } catch (error) {
          await closeAll(closing);
          throw error;
        }
      };
      /** Closes the fixture of the last rows. */
      const release = async () => {
        await closeAll(opened?.closing ?? []);
        opened = undefined;
      };

      return {
        run: async <Result>(work: (stage: Stage) => Promise<Result>): Promise<Result> => {
          const closing: (() => Promise<unknown>)[] = [];
          const use = async <Kept>(fixture: Fixture<Kept>): Promise<Kept> => {
            if (opened?.fixture !== fixture) {
              await release();
              opened = await open(fixture);
            } else {
              const system = opened.system();
              if (system) {
                last = system;
                await reset(system);
              }
            }
            return opened.value as Kept;
          };
          try {
            return await work({ ...stageOf(closing), use });
          } finally {
            await closeAll(closing);
          }
        },
        logs: () => last?.logs,
        release,
        /** After a row that failed: the next one begins with systems that it has not touched. */
        discard: async () => {
          await release();
          await closeAll(closingLane);
          shared = undefined;
        },
      };
    },
    async close() {
      await Promise.all(lanes.map(closeAll));
      await mongo.stop();
      await Promise.all(folders.map((one) => rm(one, { recursive: true, force: true })));
    },
  };
}
