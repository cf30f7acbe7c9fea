import { createECDH, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createTcpServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { hostileNames, insideUrls, nowhere } from "./inside.ts";

const preload = `--import=${pathToFileURL(join(import.meta.dirname, "other-resolver.ts")).href}`;

let system: System;
let listening: Listening;
beforeAll(async () => {
  listening = await listenInside();
  system = await startSystem({
    env: {
      NODE_OPTIONS: preload,
      HERALD_HOSTILE_NAMES: JSON.stringify(hostileNames),
      HERALD_DISPATCH_WEBPUSH_ANY_HOST: "true", // else only the browsers' push services, and nothing here would be tried
      HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "false",
      HERALD_DISPATCH_REQUEST_TIMEOUT: "2s",
    },
  });
});
afterAll(async () => {
  await system?.stop();
  await listening?.stop();
});
logOnFailure(() => system);

type Listening = Awaited<ReturnType<typeof listenInside>>;

/** On every address of this machine, on a port of its own and on 443 where that is allowed. */
async function listenInside() {
  let came = 0;
  const port = await freePort();
  const servers: Server[] = [];
  for (const one of [port, 443, 80]) {
    const server = createTcpServer((socket) => {
      came++;
      socket.on("error", () => {}).destroy();
    });
    const began = Promise.race([
      once(server.listen(one, "::"), "listening").then(() => true),
      once(server, "error").then(() => false),
    ]);
    // A port below 1024 may need root, or be in use.
    if (await began.catch(() => false)) servers.push(server);
  }
  return {
    port,
    ports: servers.length,
    came: () => came,
    stop: async () => {
      for (const server of servers) await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A subscription's keys, as a browser makes them. */
const subscriptionKeys = () => {
  const pair = createECDH("prime256v1");
  return { p256dh: pair.generateKeys().toString("base64url"), auth: randomBytes(16).toString("base64url") };
};

/** Connections that dispatch and analytics tried, but for their broker, their database and the simulators. */
function strangeConnections(one: System): string[] {
  const own = new Set([one.broker.url, one.database.url, one.simulators.url].map((url) => Number(new URL(url).port)));
  return one.logs.lines.flatMap(({ part, tried, port }) =>
    ["dispatch", "analytics"].includes(part) && typeof tried === "string" && !own.has(Number(port)) && tried !== nowhere
      ? [`${part} tried ${tried} port ${port}`]
      : [],
  );
}

test("Web Push and webhooks to internal addresses, names or rebound names: no connection", async ({ task }) => {
  // Before any attack, check that the log shows attempted connections.
  expect(system.logs.lines.some(({ part, tried }) => part === "analytics" && tried !== undefined)).toBe(true);
  const project = await system.project("Inside", ["webpush"]);
  // The simulator is where the operator says; its port is learned from a subscription.
  const simulator = Number(new URL((await system.simulators.subscribe()).endpoint).port);
  const urls = insideUrls(listening.port);
  const [subscriptions, webhooks] = [await subscribeAll(project, urls), await hookAll(project, urls)];
  for (let round = 0; round < 3; round++) {
    const { id } = await project.send({ title: "To the inside", targets: ["all"], ttl: 5 });
    await project.final(id, 120_000);
    const rows = await project.deliveries(id);
    expect(rows.filter(({ status }) => status === "accepted")).toEqual([]);
    expect(rows).toHaveLength(subscriptions);
    for (const hook of webhooks) expectStatus(await project.call(`POST /webhooks/${hook}/ping`), 202);
  }
  await eventually(
    async () => {
      for (const hook of webhooks) {
        const { body } = expectStatus(
          await project.call(`GET /webhooks/${hook}/messages?status=waiting&per_page=100`),
          200,
        );
        const pings = body.data.filter(
          ({ type, attempts }: { type: string; attempts: number }) =>
            type === "io.herald.webhook.ping.v1" && attempts === 0,
        );
        expect(pings).toEqual([]);
      }
    },
    { timeoutMs: 120_000 },
  );
  expect(strangeConnections(system).filter((line) => !line.endsWith(` ${simulator}`))).toEqual([]);
  expect(listening.came()).toBe(0);
  show(task, {
    URLs: urls.length,
    "subscriptions taken": subscriptions,
    "webhooks taken": webhooks.length,
    "ports listened on": listening.ports,
    "addresses of this machine": Object.values(networkInterfaces()).flat().length,
    connections: listening.came(),
  });
});

/** How many the gateway took: dispatch checks what an address leads to. */
async function subscribeAll(project: Project, urls: readonly string[]): Promise<number> {
  const ids = new Set<string>();
  await inParallel(urls, 8, async (token) => {
    const body = { device: { token, platform: "web", keys: subscriptionKeys() } };
    const answer = expectStatus(await project.call("POST /devices", { body }), 200, 201, 422);
    if (answer.status !== 422) ids.add(answer.body.data.id);
  });
  return ids.size;
}

/** The ids of those that could not be told to lead inside when they were made. */
async function hookAll(project: Project, urls: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  await inParallel(urls, 8, async (url) => {
    const body = { webhook: { url } };
    const answer = expectStatus(await project.call("POST /webhooks", { body }), 201, 409, 422);
    if (answer.status === 201) ids.push(answer.body.data.id);
  });
  // The most that a project may have would keep the rest from being tried.
  return ids;
}
