import { resolveNats } from "@herald/provision";
import type { BrokerSource } from "./provided.ts";

/** Finds the source of brokers; fetches a missing nats-server. Starts nothing: with Docker each test file starts its own container. */
export async function findBrokerSource(progress: (line: string) => void): Promise<BrokerSource> {
  const docker = { what: "testcontainers would start nats", start: async () => ({ url: "", stop: async () => {} }) };
  const { choice, attempts } = await resolveNats({ env: process.env, progress, docker });
  if (!choice) throw new Error(attempts.map(({ step, why }) => `${step}: ${why}`).join("\n"));
  if (choice.kind === "url") {
    const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = process.env;
    return { kind: "shared", url: choice.url, ...(user && { user }), ...(password && { password }) };
  }
  return choice.kind === "container" ? { kind: "container" } : choice;
}
