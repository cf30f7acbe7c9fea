import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, LookupFunction, Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { localhostCertificate } from "../test/certificates.ts";
import { createHttp1Transport } from "./http1-transport.ts";
import type { Transport, TransportOptions } from "./transport.ts";

const identity = localhostCertificate();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** An HTTP/1.1 server. When it stops, the client must have closed all its sockets. */
const serve = async (handle: Handle) => {
  const { certificate, privateKey } = await identity;
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server: Server = createServer({ cert: certificate, key: privateKey, ALPNProtocols: ["http/1.1"] });
  server.on("tlsClientError", () => {});
  server.on("connection", (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => handle(request, response, Buffer.concat(chunks).toString()));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  ends.push(async () => {
    try {
      await vi.waitFor(() => expect(sockets.size, "sockets left open").toBe(0), { timeout: 20_000 });
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    }
  });
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  return { origin, ca: certificate, accepted: () => accepted, open: () => sockets.size };
};

const connect = (options: TransportOptions): Transport => {
  const transport = createHttp1Transport({ requestTimeoutMs: 10_000, closeTimeoutMs: 2_000, ...options });
  ends.push(transport.close);
  return transport;
};
const push = (id: string) => ({
  path: `/push/${id}?x=1`,
  headers: { authorization: "vapid t=a, k=b", ttl: "60" },
  body: id,
});

test("sends a POST with its headers and body, and gives the whole answer", async () => {
  const seen: unknown[] = [];
  const { origin, ca } = await serve(({ method, url, headers, httpVersion }, response, body) => {
    seen.push({
      method,
      url,
      httpVersion,
      ttl: headers.ttl,
      host: headers.host,
      length: headers["content-length"],
      body,
    });
    response.writeHead(201, { location: "/message/1", "set-cookie": ["a=1", "b=2"] }).end("grüß");
  });
  const answer = await connect({ origin, ca }).send({ ...push("é"), body: Buffer.from("é"), path: "/push/1?x=1" });
  expect(answer).toMatchObject({
    ...{ kind: "answered", status: 201, body: "grüß" },
    headers: { location: "/message/1", "set-cookie": "a=1, b=2" },
  });
  const host = origin.slice("https://".length);
  expect(seen).toEqual([
    { method: "POST", url: "/push/1?x=1", httpVersion: "1.1", ttl: "60", host, length: "2", body: "é" },
  ]);
});

test("keeps its connections, few of them, and closes them at the end", async () => {
  const { origin, ca, accepted, open } = await serve((_, response) => response.writeHead(201).end());
  const transport = connect({ origin, ca });
  const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => transport.send(push(`${index}`))));
  expect(answers.every((answer) => answer.kind === "answered" && answer.status === 201)).toBe(true);
  expect(accepted()).toBeLessThanOrEqual(16);
  await transport.close();
  await vi.waitFor(() => expect(open()).toBe(0), { timeout: 20_000 });
  expect(await transport.send(push("late"))).toMatchObject({ kind: "unprocessed" });
});

test("follows no redirect", async () => {
  const { origin, ca, accepted } = await serve((_, response) =>
    response.writeHead(307, { location: "https://elsewhere.example/" }).end(),
  );
  expect(await connect({ origin, ca }).send(push("1"))).toMatchObject({ kind: "answered", status: 307 });
  expect(accepted()).toBe(1);
});

test.each<[string, Handle]>([
  ["closes without an answer", ({ socket }) => socket.destroy()],
  [
    "closes in the middle of its answer",
    ({ socket }, response) => {
      response.writeHead(201, { "content-length": "100" });
      response.write("half", () => socket.destroy());
    },
  ],
  ["is no HTTP", ({ socket }) => socket.end("220 mail.example ESMTP\r\n")],
  [
    "switches protocols",
    ({ socket }) => socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
  ],
  ["has a header without an end", ({ socket }) => socket.write(`HTTP/1.1 201 OK\r\nx: ${"y".repeat(100_000)}`)],
])("an answer that %s leaves it unknown", async (_, handle) => {
  const { origin, ca } = await serve(handle);
  expect(await connect({ origin, ca }).send(push("1"))).toMatchObject({
    kind: "unknown",
    reason: expect.stringMatching(/./),
  });
});

test("a request that a reused connection loses is unknown", async () => {
  const served = new Set<unknown>();
  const { origin, ca } = await serve(({ socket }, response) => {
    if (served.has(socket)) return socket.destroy();
    served.add(socket);
    response.writeHead(201).end();
  });
  const transport = connect({ origin, ca });
  const answers = await Promise.all(Array.from({ length: 32 }, (_, index) => transport.send(push(`${index}`))));
  const kinds = new Set(answers.map(({ kind }) => kind));
  expect([...kinds].sort()).toEqual(["answered", "unknown"]);
});

test("a request without an answer is unknown after its timeout, and one that got no connection is unprocessed", async () => {
  const { origin, ca } = await serve(() => {});
  const transport = connect({ origin, ca, requestTimeoutMs: 3_000 });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => transport.send(push(`${index}`))));
  const kinds = answers.map(({ kind }) => kind);
  // A waiting request may still get a socket at the last moment.
  expect(kinds.filter((kind) => kind === "unknown").length).toBeGreaterThanOrEqual(16);
  expect(kinds).not.toContain("answered");
});

test("only the beginning of an oversized body is kept", async () => {
  const { origin, ca } = await serve((_, response) => response.writeHead(400).end("x".repeat(1_000_000)));
  const answer = await connect({ origin, ca, maxBodyBytes: 1_000 }).send(push("1"));
  expect(answer).toMatchObject({ kind: "answered", status: 400, body: "x".repeat(1_000) });
});

test.each([
  ["no listener", async () => ({ origin: "https://localhost:1" })],
  [
    "the name leads where it must not",
    async () => ({
      origin: "https://push.example",
      lookup: ((_, __, done) => done(new Error("not public: 10.0.0.1"), "", 4)) as LookupFunction,
    }),
  ],
  [
    "its certificate is self-signed by a stranger",
    async () => {
      const { origin } = await serve((_, response) => response.end());
      return { origin };
    },
  ],
])("where %s nothing was sent", async (_, options) => {
  const answer = await connect(await options()).send(push("1"));
  expect(answer).toMatchObject({ kind: "unprocessed", reason: expect.stringMatching(/./) });
  if (answer.kind === "unprocessed" && answer.reason.includes("public"))
    expect(answer.reason).toBe("not public: 10.0.0.1");
});

test("a header that would begin another is refused before anything is written", async () => {
  const { origin, ca, accepted } = await serve((_, response) => response.end());
  const transport = connect({ origin, ca });
  for (const headers of [{ "x-a": "b\r\nx-c: d" }, { host: "elsewhere" }, { "transfer-encoding": "chunked" }])
    await expect(transport.send({ ...push("1"), headers } as never)).rejects.toThrow(TypeError);
  expect(accepted()).toBe(0);
});

test("closing waits for requests that were written, and returns the others as unprocessed", async () => {
  let answer: (() => void) | undefined;
  const { origin, ca } = await serve((_, response) => {
    answer = () => response.writeHead(201).end();
  });
  const transport = connect({ origin, ca });
  const written = transport.send(push("1"));
  await vi.waitFor(() => expect(answer).toBeDefined(), { timeout: 20_000 });
  const closed = transport.close();
  answer?.();
  expect(await written).toMatchObject({ kind: "answered", status: 201 });
  await closed;
});
