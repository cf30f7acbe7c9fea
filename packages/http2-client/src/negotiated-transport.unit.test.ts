import { once } from "node:events";
import { createSecureServer } from "node:http2";
import { createServer } from "node:https";
import type { AddressInfo, LookupFunction, Socket } from "node:net";
import { openTunnel } from "@herald/kit";
import { freePort } from "@herald/provision";
import { startConnectProxy } from "@herald/testing";
import { afterEach, expect, test, vi } from "vitest";
import { localhostCertificate } from "../test/certificates.ts";
import { createNegotiatedTransport } from "./negotiated-transport.ts";
import type { TransportOptions } from "./transport.ts";

const identity = localhostCertificate();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Answers with the HTTP version of the request. */
const serve = async (speaks: "h2" | "http/1.1" | "both", port = 0) => {
  const { certificate: cert, privateKey: key } = await identity;
  const server =
    speaks === "http/1.1"
      ? createServer({ cert, key, ALPNProtocols: ["http/1.1"] })
      : createSecureServer({ cert, key, allowHTTP1: speaks === "both" });
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  server.on("request", (request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(201, { "x-version": request.httpVersion }).end());
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  let running = true;
  const stop = async () => {
    if (!running) return;
    running = false;
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  };
  ends.push(stop);
  const taken = (server.address() as AddressInfo).port;
  return { origin: `https://localhost:${taken}`, ca: cert, port: taken, accepted: () => accepted, stop };
};

const clock = { now: 0 };
const connect = (options: TransportOptions) => {
  clock.now = 1_000;
  const limits = { requestTimeoutMs: 5_000, connectTimeoutMs: 2_000, closeTimeoutMs: 1_000 };
  const transport = createNegotiatedTransport({ ...limits, ...options }, () => clock.now);
  ends.push(transport.close);
  return { ...transport, push: () => transport.send({ path: "/push/1", headers: { ttl: "60" }, body: "x" }) };
};

test.each([
  ["h2", "2.0"],
  ["both", "2.0"],
  ["http/1.1", "1.1"],
] as const)("a server of %s is spoken to by HTTP/%s", async (speaks, version) => {
  const { origin, ca, accepted } = await serve(speaks);
  const { push } = connect({ origin, ca });
  const answers = await Promise.all([push(), push(), push()]);
  for (const answer of answers) expect(answer).toMatchObject({ kind: "answered", headers: { "x-version": version } });
  const before = accepted();
  await push();
  // The protocol is negotiated once, not for each request.
  expect(accepted()).toBe(before);
});

/** A proxy, and how to reach the server through it. */
const proxied = async (port: number, answer?: () => string | undefined) => {
  const proxy = await startConnectProxy({ answer });
  ends.push(proxy.stop);
  const dial: TransportOptions["dial"] = (signal = AbortSignal.timeout(5_000)) =>
    openTunnel({ url: new URL(proxy.url), authorization: undefined }, { host: "localhost", port }, signal);
  return { proxy, dial };
};

test.each([
  ["h2", "2.0"],
  ["http/1.1", "1.1"],
] as const)("through a proxy a server of %s is spoken to by HTTP/%s", async (speaks, version) => {
  const { origin, ca, port } = await serve(speaks);
  const { proxy, dial } = await proxied(port);
  const { push, close } = connect({ origin, ca, dial });
  const answers = await Promise.all(Array.from({ length: 200 }, push));
  for (const answer of answers) expect(answer).toMatchObject({ kind: "answered", headers: { "x-version": version } });
  expect(proxy.asked.length).toBeGreaterThan(1);
  // The handshake that finds out the protocol, and the sockets of the requests.
  expect(proxy.asked.length).toBeLessThanOrEqual(17);
  await close();
  await vi.waitFor(() => expect(proxy.tunnels()).toBe(0), { timeout: 20_000 });
});

test("a proxy that refuses later is the reason, and what was not sent is safe to send again", async () => {
  const { origin, ca, port } = await serve("http/1.1");
  let refusing = false;
  const { dial } = await proxied(port, () => (refusing ? "HTTP/1.1 403 Filtered\r\n\r\n" : undefined));
  const { push } = connect({ origin, ca, dial });
  expect(await push()).toMatchObject({ kind: "answered" });
  refusing = true;
  const answers = await Promise.all(Array.from({ length: 40 }, push));
  const reason = `the proxy refuses connections to localhost:${port} (403)`;
  expect(answers).toContainEqual({ kind: "unprocessed", reason });
  for (const answer of answers) if (answer.kind !== "answered") expect(answer).toEqual({ kind: "unprocessed", reason });
});

test("closing while the proxy is silent leaves no connection to it", async () => {
  const { origin, ca, port } = await serve("http/1.1");
  let silent = false;
  const { proxy, dial } = await proxied(port, () => (silent ? "" : undefined));
  const { push, close } = connect({ origin, ca, dial });
  expect(await push()).toMatchObject({ kind: "answered" });
  silent = true;
  const sent = Promise.all([push(), push(), push()]);
  await vi.waitFor(() => expect(proxy.asked.length).toBeGreaterThanOrEqual(3), { timeout: 20_000 });
  await close();
  for (const { kind } of await sent) expect(["answered", "unprocessed"]).toContain(kind);
  await vi.waitFor(() => expect(proxy.connections()).toBe(0), { timeout: 20_000 });
});

test("the protocol is negotiated again after a server changes it and connections fail", async () => {
  const { origin, ca, port, stop } = await serve("h2", await freePort());
  const { push } = connect({ origin, ca });
  expect(await push()).toMatchObject({ headers: { "x-version": "2.0" } });
  await stop();
  await serve("http/1.1", port);
  await vi.waitFor(
    async () => {
      clock.now += 61_000;
      expect(await push()).toMatchObject({ headers: { "x-version": "1.1" } });
    },
    { timeout: 15_000, interval: 50 },
  );
});

test("where the guard refuses, nothing is connected to, and the reason is the guard's", async () => {
  const lookup = ((_, __, done) => done(new Error("not public: 10.0.0.1"), "", 4)) as LookupFunction;
  const { push } = connect({ origin: "https://push.example", lookup });
  for (let again = 0; again < 3; again++)
    expect(await push()).toEqual({ kind: "unprocessed", reason: "not public: 10.0.0.1" });
});

test("an unavailable server is used once it is available", async () => {
  const { origin, ca, port, stop } = await serve("http/1.1", await freePort());
  await stop();
  const { push, close } = connect({ origin, ca });
  expect(await push()).toMatchObject({ kind: "unprocessed" });
  await serve("http/1.1", port);
  clock.now += 20_000;
  expect(await push()).toMatchObject({ headers: { "x-version": "1.1" } });
  await close();
  expect(await push()).toEqual({ kind: "unprocessed", reason: "the transport is closed" });
});

test("closing during the negotiation returns the request as unprocessed", async () => {
  const { origin, ca } = await serve("http/1.1");
  const { push, close } = connect({ origin, ca });
  const sent = push();
  await close();
  expect(await sent).toEqual({ kind: "unprocessed", reason: "the transport is closed" });
});
