import type { IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import { socketErrorText } from "@herald/kit";
import { createRequestCheck } from "./check-request.ts";
import { createClosing } from "./closing.ts";
import { limitsOf, type Transport, type TransportAnswer, type TransportOptions } from "./transport.ts";

/** One request at a time each: at 50 ms that is 300 pushes a second to one self-hosted server, which is plenty for it. */
const maxSockets = 16;
/** Shorter than the five seconds after which Node's servers close a quiet connection: what is written then is lost. */
const idleMs = 4_000;

type Exchange = { readonly written: () => boolean; readonly end: (answer: TransportAnswer) => void };

/**
 * HTTP/1.1 over TLS by `node:https`, with connections that are kept: for push services that speak nothing newer. Of the limits
 * it knows those of time and the size of a body; what of HTTP/2 has no counterpart here is left out.
 *
 * What was given to a socket and lost may have arrived, so it is `unknown`, also where the server had just closed a quiet connection.
 */
export function createHttp1Transport(options: TransportOptions): Transport {
  const { origin, ca, certificate: cert, privateKey: key, lookup } = options;
  if (!origin.startsWith("https://")) throw new TypeError("the origin must be https");
  const limits = limitsOf(options);
  const { hostname, port } = new URL(origin);
  const agent = new Agent({
    ...{ keepAlive: true, maxSockets: maxSockets, timeout: idleMs, scheduling: "lifo", noDelay: true },
    ...{ ca, cert, key, ALPNProtocols: ["http/1.1"] },
    ...(lookup ? { lookup } : {}),
  });
  const assertSendable = createRequestCheck();
  const exchanges = new Set<Exchange>();
  /** Not what Node calls reused: it says so only of those that were free in between. */
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
    const outgoing = httpsRequest({
      ...{ agent, hostname: hostname.replace(/^\[|\]$/g, ""), port: port || 443, method: "POST", path },
      headers: { ...headers, "content-length": String(content.length) },
    });
    const end = (answer: TransportAnswer) => {
      if (!exchanges.delete(own)) return;
      clearTimeout(deadline);
      clearTimeout(connecting);
      resolve(answer);
      if (answer.kind !== "answered") outgoing.destroy();
      closed.check();
    };
    const lose = (reason: string) => end({ kind: written ? "unknown" : "unprocessed", reason });
    const own: Exchange = { written: () => written, end };
    const deadline = setTimeout(() => {
      const { requestTimeoutMs: ms } = limits;
      lose(written ? `no answer within ${ms} ms` : `no connection became free (waited ${ms} ms)`);
    }, limits.requestTimeoutMs);
    exchanges.add(own);

    outgoing.on("socket", (socket: TLSSocket) => {
      if (secured.has(socket)) {
        written = true;
        return;
      }
      const { connectTimeoutMs: ms } = limits;
      connecting = setTimeout(() => lose(`no connection within ${ms} ms`), ms);
      // Until then nothing leaves, whatever was written.
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

/** Reads to the end of the answer and keeps `maxBytes` of its body. */
function readAnswer(response: IncomingMessage, maxBytes: number, done: (answer: TransportAnswer) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    if (size < maxBytes) chunks.push(chunk.subarray(0, maxBytes - size));
    size += chunk.length;
  });
  response.on("error", () => {}); // told by the close that follows
  response.on("end", () => {
    const headers: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(response.headers))
      headers[name] = Array.isArray(value) ? value.join(", ") : value;
    done({ kind: "answered", status: response.statusCode ?? 0, headers, body: Buffer.concat(chunks).toString("utf8") });
  });
  response.on("close", () => done({ kind: "unknown", reason: "the answer was cut off" }));
}
