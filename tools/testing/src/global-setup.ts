import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, startMongo } from "@herald/provision";
import type { TestProject } from "vitest/node";
import { findBrokerSource } from "./broker-source.ts";
import { mongoContainer } from "./containers.ts";

const progress = (line: string) => process.stderr.write(`${line}\n`);

const start = async () => {
  const folder = await mkdtemp(join(tmpdir(), "herald-test-db-"));
  removeAtExit(folder);
  const [mongo, broker] = await Promise.all([
    startMongo({ dataDir: folder, port: 0, durable: false, env: process.env, progress, docker: mongoContainer }),
    findBrokerSource(progress),
  ]);
  const stop = async () => {
    await mongo.stop();
    // A server that had to be killed may still write for a moment, and an error here would fail a run whose tests all passed.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  return { mongo, broker, stop, users: 0 };
};

/** Vitest loads this file for each of its projects, so the run's database is kept where all of them find it. */
const run = globalThis as { heraldTestRun?: ReturnType<typeof start> };

/** Starts the run's database and finds the source of brokers, so that programs are fetched only once. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.heraldTestRun ??= start();
  const started = await run.heraldTestRun;
  started.users += 1;
  project.provide("heraldMongoUrl", started.mongo.url);
  project.provide("heraldBrokerSource", started.broker);
  return async () => {
    started.users -= 1;
    if (started.users === 0) await started.stop();
  };
}
