import type { TlsOptions } from "node:tls";
import { openTunnel } from "@herald/kit";
import { type ConnectProxy, startConnectProxy } from "@herald/testing";
import { afterEach, expect, test, vi } from "vitest";
import { createHttp2Transport } from "../src/http2-transport.ts";
import type { Transport, TransportAnswer, TransportOptions, TransportRequest } from "../src/transport.ts";
import type { PeerScript } from "./strict-peer.ts";
import { type StrictServer, startStrictServer } from "./strict-server.ts";

export type Fixture = {
  serve(script: PeerScript, tls?: TlsOptions): Promise<StrictServer>;
  connect(server: { origin: string; ca?: string }, options?: Partial<TransportOptions>): Transport;
};

/** Timeouts that keep tests short; no test asserts them. */
const quick = { requestTimeoutMs: 20_000, connectTimeoutMs: 5_000, pingTimeoutMs: 2_000, closeTimeoutMs: 2_000 };

/** Set by the project `unit-through-proxy`: the same tests, with every connection through a proxy. */
// biome-ignore lint/style/noProcessEnv: vitest sets it for the project
const throughProxy = process.env.HERALD_TEST_THROUGH_PROXY === "1";

/** Starts servers and transports. `end` closes them, and fails if the client broke HTTP/2 or left a socket. */
function startFixture(): Fixture & { end(): Promise<void> } {
  const transports: Transport[] = [];
  const servers: StrictServer[] = [];
  let proxy: Promise<ConnectProxy> | undefined;
  const dialTo = (origin: string): TransportOptions["dial"] => {
    const { hostname, port } = new URL(origin);
    const target = { host: hostname, port: Number(port) };
    return async (signal = AbortSignal.timeout(quick.connectTimeoutMs)) => {
      proxy ??= startConnectProxy();
      return openTunnel({ url: new URL((await proxy).url), authorization: undefined }, target, signal);
    };
  };
  return {
    async end() {
      const running = servers.splice(0);
      await Promise.all(transports.splice(0).map((transport) => transport.close()));
      try {
        for (const server of running) {
          await vi.waitFor(() => expect(server.connected(), "sockets left open").toBe(0), { timeout: 20_000 });
          expect(server.violations).toEqual([]);
        }
        const used = await proxy;
        await vi.waitFor(() => expect(used?.tunnels() ?? 0, "tunnels left open").toBe(0), { timeout: 20_000 });
      } finally {
        await Promise.all(running.map((server) => server.close()));
        await (await proxy)?.stop();
        proxy = undefined;
      }
    },
    async serve(script, tls) {
      const server = await startStrictServer(script, tls);
      servers.push(server);
      return server;
    },
    connect({ origin, ca }, options = {}) {
      const transport = createHttp2Transport({
        ...{ origin, ca, dial: throughProxy && !options.lookup ? dialTo(origin) : undefined },
        ...quick,
        ...options,
      });
      transports.push(transport);
      return transport;
    },
  };
}

/** Servers and transports that end after each test. */
export function createFixture(): Fixture {
  const { end, ...fixture } = startFixture();
  afterEach(end);
  return fixture;
}

/** A test with servers and transports of its own, for tests that wait beside each other. */
export const isolated = test.extend<{ fixture: Fixture }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of other fixtures here
  fixture: async ({}, use) => {
    const { end, ...fixture } = startFixture();
    await use(fixture);
    await end();
  },
});

/** A push with its id as body, so that a server can count it without reading headers. */
export const push = (id: string): TransportRequest => ({
  path: `/3/device/${id}`,
  headers: { authorization: "bearer abc.def.ghi", "apns-topic": "com.example.app", "apns-push-type": "alert" },
  body: id,
});

export const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `push-${index}`);

export const sendAll = (transport: Transport, bodies: readonly string[]): Promise<TransportAnswer[]> =>
  Promise.all(bodies.map((id) => transport.send(push(id))));

/** How many answers of each kind there are. */
export function kinds(answers: readonly TransportAnswer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of answers) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
