import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, type AgentOptions, request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import { createProxyAgent, socketErrorText } from "@herald/kit";
import {
  createClosing,
  createRequestCheck,
  limitsOf,
  type Transport,
  type TransportAnswer,
  type TransportOptions,
} from "./transport.ts";

/** Each needs a socket. At 50 ms a request, 16 send 320 a second: enough for one self-hosted server. */
const maxExchanges = 16;
/** Node's servers close an idle connection after 5 s, and a request written at that moment is lost. So this is shorter. */
const idleMs = 4_000;

type Exchange = { readonly written: () => boolean; readonly end: (answer: TransportAnswer) => void };

/**
 * HTTP/1.1 over TLS with `node:https` and keep-alive, for push services without HTTP/2. It applies the timeouts and `maxBodyBytes`
 * and ignores the limits that only HTTP/2 has.
 *
 * A request that was written and lost may have arrived, so its answer is `unknown`, even if the server had just closed an idle connection.
 */
export function createHttp1Transport(options: TransportOptions): Transport {
  const { origin, ca, certificate: cert, privateKey: key, lookup, dial } = options;
  if (!origin.startsWith("https://")) throw new TypeError("the origin must be https");
  const limits = limitsOf(options);
  const { hostname, port } = new URL(origin);
  const agentOptions: AgentOptions = {
    ...{ keepAlive: true, timeout: idleMs, scheduling: "lifo", noDelay: true },
    ...{ ca, cert, key, ALPNProtocols: ["http/1.1"] },
    ...(lookup ? { lookup } : {}),
  };
  const agent = dial ? createProxyAgent(() => dial, agentOptions) : new Agent(agentOptions);
  const assertSendable = createRequestCheck();
  const exchanges = new Set<Exchange>();
  /** Of exchanges that wait for the end of another. */
  const starts: (() => void)[] = [];
  let started = 0;
  /** Sockets with a finished handshake. `reusedSocket` is no substitute: Node sets it only for sockets that were idle in between. */
  const secured = new WeakSet<TLSSocket>();
  let closing = false;
  const closed = createClosing(() => exchanges.size === 0);

  const exchange = (
    { path, headers, body }: Parameters<Transport["send"]>[0],
    resolve: (answer: TransportAnswer) => void,
  ): void => {
    const content = Buffer.from(body);
    let written = false;
    let connecting: NodeJS.Timeout | undefined;
    let outgoing: ClientRequest | undefined;
    const end = (answer: TransportAnswer) => {
      if (!exchanges.delete(own)) return;
      clearTimeout(deadline);
      clearTimeout(connecting);
      resolve(answer);
      if (answer.kind !== "answered") outgoing?.destroy();
      // The agent has the socket back a little after the end of the answer.
      if (outgoing) setImmediate(startNext);
      closed.check();
    };
    const lose = (reason: string) => end({ kind: written ? "unknown" : "unprocessed", reason });
    const own: Exchange = { written: () => written, end };
    const deadline = setTimeout(() => {
      const { requestTimeoutMs: ms } = limits;
      lose(written ? `no answer within ${ms} ms` : `no connection became free (waited ${ms} ms)`);
    }, limits.requestTimeoutMs);
    exchanges.add(own);

    const start = () => {
      if (!exchanges.has(own)) return;
      started++;
      outgoing = httpsRequest({
        ...{ agent, hostname: hostname.replace(/^\[|\]$/g, ""), port: port || 443, method: "POST", path },
        headers: { ...headers, "content-length": String(content.length) },
      });
      outgoing.on("socket", (socket: TLSSocket) => {
        // Reused: perhaps opened through the proxy for a request that had ended, and secured since.
        if (secured.has(socket) || outgoing?.reusedSocket) {
          written = true;
          return;
        }
        const { connectTimeoutMs: ms } = limits;
        connecting = setTimeout(() => lose(`no connection within ${ms} ms`), ms);
        // Node sends nothing before the TLS handshake is done, even if the request was written earlier.
        socket.once("secureConnect", () => {
          secured.add(socket);
          written = true;
          clearTimeout(connecting);
        });
      });
      let begun = false;
      outgoing.on("response", (response) => {
        begun = true;
        readAnswer(response, limits.maxBodyBytes, (answer) => end(answer));
      });
      outgoing.on("error", (error) => lose(socketErrorText(error)));
      outgoing.on("close", () => {
        if (!begun) lose("the connection was closed without an answer");
      });
      outgoing.end(content);
    };
    if (started < maxExchanges) start();
    else starts.push(start);
  };

  const startNext = () => {
    started--;
    while (started < maxExchanges) {
      const start = starts.shift();
      if (!start) return;
      start();
    }
  };

  return {
    send: (request) =>
      new Promise((resolve) => {
        assertSendable(request);
        if (closing) resolve({ kind: "unprocessed", reason: "the transport is closed" });
        else exchange(request, resolve);
      }),
    async close() {
      closing = true;
      for (const { written, end } of [...exchanges])
        if (!written()) end({ kind: "unprocessed", reason: "the transport is closed" });
      await closed.within(limits.closeTimeoutMs, () => {
        for (const { end } of [...exchanges]) end({ kind: "unknown", reason: "closed before its answer" });
      });
      agent.destroy();
    },
  };
}

/** Reads the whole answer and keeps the first `maxBytes` of its body. */
function readAnswer(response: IncomingMessage, maxBytes: number, done: (answer: TransportAnswer) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    if (size < maxBytes) chunks.push(chunk.subarray(0, maxBytes - size));
    size += chunk.length;
  });
  response.on("error", () => {}); // the `close` event that follows reports it
  response.on("end", () => {
    const headers: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(response.headers))
      headers[name] = Array.isArray(value) ? value.join(", ") : value;
    done({ kind: "answered", status: response.statusCode ?? 0, headers, body: Buffer.concat(chunks).toString("utf8") });
  });
  response.on("close", () => done({ kind: "unknown", reason: "the answer was cut off" }));
}
