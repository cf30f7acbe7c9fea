import { socketErrorText } from "@herald/kit";
import { createBackoff } from "./backoff.ts";
import { createHttp1Transport } from "./http1-transport.ts";
import { createHttp2Transport } from "./http2-transport.ts";
import { connectTls } from "./tls-socket.ts";
import { limitsOf, type Transport, type TransportOptions } from "./transport.ts";

type Protocol = "h2" | "http/1.1";
type Connection = { readonly protocol: Protocol; readonly transport: Transport; readonly negotiatedAt: number };

/** A server may learn HTTP/2, or lose it: when nothing can be sent any more it is asked again, so often. */
const renegotiateAfterMs = 60_000;

/**
 * HTTP/2 where the server speaks it, else HTTP/1.1: it is asked once, in a TLS handshake (ALPN), before the first request. That
 * costs a connection without a request, so it is for servers that strangers choose and that may be old.
 * The first request may take `connectTimeoutMs` longer than the transport's contract says.
 */
export function createNegotiatedTransport(options: TransportOptions, now = () => performance.now()): Transport {
  const backoff = createBackoff({ firstMs: 100, maxMs: 10_000 });
  const closingTransports = new Set<Promise<void>>();
  let connection: Connection | undefined;
  let negotiating: Promise<void> | undefined;
  let suspect = false;
  let closing = false;

  const closeTransport = (transport: Transport) => {
    const closed: Promise<void> = transport.close().finally(() => closingTransports.delete(closed));
    closingTransports.add(closed);
  };

  /** Keeps the connection as it is when the server cannot be reached; then the backoff knows why. */
  const negotiate = async (): Promise<void> => {
    let protocol: Protocol;
    try {
      protocol = await askProtocol(options);
    } catch (error) {
      backoff.failed(now(), socketErrorText(error as Error));
      return;
    }
    backoff.succeeded();
    suspect = false;
    if (closing) return;
    const before = connection;
    if (before?.protocol === protocol) {
      connection = { ...before, negotiatedAt: now() };
      return;
    }
    const transport = protocol === "h2" ? createHttp2Transport(options) : createHttp1Transport(options);
    connection = { protocol, transport, negotiatedAt: now() };
    if (before) closeTransport(before.transport);
  };

  const isDue = (): boolean =>
    (!connection || (suspect && now() - connection.negotiatedAt > renegotiateAfterMs)) && now() >= backoff.nextAt();

  return {
    async send(request) {
      if (!closing && (negotiating || isDue())) {
        negotiating ??= negotiate().finally(() => {
          negotiating = undefined;
        });
        await negotiating;
      }
      if (closing) return { kind: "unprocessed", reason: "the transport is closed" };
      if (!connection) return { kind: "unprocessed", reason: backoff.reason() };
      const answer = await connection.transport.send(request);
      if (answer.kind === "unprocessed") suspect = true;
      return answer;
    },
    async close() {
      closing = true;
      await negotiating;
      if (connection) closeTransport(connection.transport);
      connection = undefined;
      await Promise.all(closingTransports);
    },
  };
}

/** Rejects when the server cannot be reached. */
function askProtocol(options: TransportOptions): Promise<Protocol> {
  const { promise, resolve, reject } = Promise.withResolvers<Protocol>();
  const { connectTimeoutMs: ms } = limitsOf(options);
  const socket = connectTls(options, { last: undefined }, ["h2", "http/1.1"]);
  const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${ms} ms`)), ms);
  // A server that names no protocol means the one from before there was a choice.
  socket.once("secureConnect", () => {
    resolve(socket.alpnProtocol === "h2" ? "h2" : "http/1.1");
    socket.destroy();
  });
  socket.on("error", reject);
  socket.once("close", () => {
    clearTimeout(timer);
    reject(new Error("the connection was closed"));
  });
  return promise;
}
