import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, resolveNats, startMongo } from "@herald/local-stack";
import type { TestProject } from "vitest/node";
import { mongoContainer } from "./containers.ts";
import type { BrokerSource } from "./provided.ts";

const progress = (line: string) => process.stderr.write(`${line}\n`);

/** Starts the run's database and finds out where brokers come from, so that whatever must be fetched is fetched once. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "herald-test-db-"));
  removeAtExit(folder);
  const [mongo, broker] = await Promise.all([
    startMongo({ dataDir: folder, port: 0, durable: false, env: process.env, progress, docker: mongoContainer }),
    findBrokerSource(),
  ]);
  project.provide("heraldMongoUrl", mongo.url);
  project.provide("heraldBrokerSource", broker);
  return async () => {
    await mongo.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

/** With Docker each test file starts a container of its own, so nothing is started here. */
async function findBrokerSource(): Promise<BrokerSource> {
  const docker = { what: "testcontainers would start nats", start: async () => ({ url: "", stop: async () => {} }) };
  const { choice, attempts } = await resolveNats({ env: process.env, progress, docker });
  if (!choice) throw new Error(attempts.map(({ step, why }) => `${step}: ${why}`).join("\n"));
  if (choice.kind === "url") {
    const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = process.env;
    return { kind: "shared", url: choice.url, ...(user && { user }), ...(password && { password }) };
  }
  return choice.kind === "container" ? { kind: "container" } : choice;
}
