import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createOutboundProxy, notPublicText, type Resolve } from "@herald/kit";
import { type ConnectProxy, startConnectProxy } from "@herald/testing";
import { generate } from "selfsigned";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createWebhookClient } from "./webhook-client.ts";

const name = "hooks.example.com";
const usual = getCACertificates();
const received: string[] = [];
let receiver: ReturnType<typeof createServer>;
let port: number;
beforeAll(async () => {
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: name }] }],
  });
  setDefaultCACertificates([...usual, cert]);
  receiver = createServer({ cert, key }, async (request, response) => {
    received.push(Buffer.concat(await request.toArray()).toString());
    response.writeHead(204).end();
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  port = (receiver.address() as AddressInfo).port;
});
afterAll(async () => {
  setDefaultCACertificates(usual);
  receiver.closeAllConnections();
  await new Promise((done) => receiver.close(done));
});

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  received.length = 0;
  for (const end of ends.splice(0).reverse()) await end();
});

const addresses: Readonly<Record<string, string>> = { [name]: "93.184.216.34", "inside.example.com": "10.0.0.1" };
const resolve: Resolve = (hostname, _options, done) => {
  const address = addresses[hostname];
  if (address === undefined) return done(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }), []);
  done(null, [{ address, family: 4 }]);
};

const through = (proxy: ConnectProxy, { anyHost = false, NO_PROXY = "", HERALD_PROXY_RESOLVES = false } = {}) => {
  const timeouts = { timeoutMs: 20_000, connectTimeoutMs: 10_000 };
  const outbound = createOutboundProxy({ HTTPS_PROXY: proxy.url, NO_PROXY, HERALD_PROXY_RESOLVES });
  const client = createWebhookClient({ ...timeouts, anyHost, resolve, proxy: outbound });
  ends.push(async () => client.close());
  return (url: string, body = "event") => client.post(url, {}, body, new AbortController().signal);
};
const start = async (answer?: string): Promise<ConnectProxy> => {
  const proxy = await startConnectProxy({ answer: () => answer, portOf: () => port });
  ends.push(proxy.stop);
  return proxy;
};

test("a webhook is called through the proxy by an address that was checked, with TLS for its name, on a kept connection", async () => {
  const proxy = await start();
  const post = through(proxy);
  for (const body of ["one", "two"])
    expect(await post(`https://${name}/`, body)).toMatchObject({ kind: "answered", status: 204 });
  expect(received).toEqual(["one", "two"]);
  expect(proxy.asked.map(({ authority }) => authority)).toEqual(["93.184.216.34:443"]);
});

test("the proxy is never asked for a name that leads inside, or that only it could resolve", async () => {
  const proxy = await start();
  const post = through(proxy);
  expect(await post("https://inside.example.com/")).toMatchObject({ kind: "unanswered", problem: notPublicText });
  expect(await post("https://unknown.example.com/")).toMatchObject({
    problem: expect.stringContaining("unless HERALD_PROXY_RESOLVES is set"),
  });
  expect(proxy.asked).toEqual([]);
});

test("with HERALD_PROXY_RESOLVES the proxy is asked for the name", async () => {
  const proxy = await start();
  const post = through(proxy, { HERALD_PROXY_RESOLVES: true });
  expect(await post(`https://${name}/`)).toMatchObject({ status: 204 });
  expect(await post("https://metadata.google.internal/")).toMatchObject({
    problem: "the endpoint's host has a name that is never public",
  });
  expect(proxy.asked.map(({ authority }) => authority)).toEqual([`${name}:443`]);
});

test("NO_PROXY is called directly, under the same guard", async () => {
  const proxy = await start();
  const post = through(proxy, { NO_PROXY: "example.com" });
  expect(await post("https://inside.example.com/")).toMatchObject({ problem: notPublicText });
  expect(proxy.asked).toEqual([]);
});

test.each([
  ["HTTP/1.1 403 Filtered\r\n\r\nno", "the proxy refuses connections to 93.184.216.34:443 (403)"],
  ["HTTP/1.1 410 Gone\r\n\r\n", "the proxy refuses connections to 93.184.216.34:443 (410)"],
  ["HTTP/1.1 200 OK\r\n\r\nwelcome", "the proxy does not answer as a proxy"],
  ["HTTP/1.1 504 Timeout\r\n\r\n", "the proxy gives no connection to 93.184.216.34:443 (504)"],
])("what the proxy answers (%j) is not the webhook's answer", async (answer, problem) => {
  const proxy = await start(answer);
  expect(await through(proxy)(`https://${name}/`)).toMatchObject({ kind: "unanswered", problem });
});
