import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, startMongo } from "@herald/local-stack";
import type { TestProject } from "vitest/node";
import { findBrokerSource } from "./broker-source.ts";
import { mongoContainer } from "./containers.ts";

const progress = (line: string) => process.stderr.write(`${line}\n`);

/** Starts the run's database and finds the source of brokers, so that programs are fetched only once. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "herald-test-db-"));
  removeAtExit(folder);
  const [mongo, broker] = await Promise.all([
    startMongo({ dataDir: folder, port: 0, durable: false, env: process.env, progress, docker: mongoContainer }),
    findBrokerSource(progress),
  ]);
  project.provide("heraldMongoUrl", mongo.url);
  project.provide("heraldBrokerSource", broker);
  return async () => {
    await mongo.stop();
    // A server that had to be killed may still write for a moment, and an error here would fail a run whose tests all passed.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
}
