import { socketErrorText } from "@herald/kit";
import { createBackoff } from "./backoff.ts";
import { createHttp1Transport } from "./http1-transport.ts";
import { createHttp2Transport } from "./http2-transport.ts";
import { connectTls } from "./tls-socket.ts";
import { limitsOf, type Transport, type TransportOptions } from "./transport.ts";

type Protocol = "h2" | "http/1.1";
type Connection = { readonly protocol: Protocol; readonly transport: Transport; readonly negotiatedAt: number };

/** A server may gain or lose HTTP/2. After a request that could not be sent, the protocol is negotiated again at most this often. */
const renegotiateAfterMs = 60_000;

/**
 * Uses HTTP/2 if the server speaks it, else HTTP/1.1. One TLS handshake (ALPN) before the first request finds out. It costs a
 * connection without a request, so use this only for servers that third parties choose and that may be old.
 * The first request may take `connectTimeoutMs` longer than the contract of `Transport` says.
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

  /** If the server cannot be reached, keeps the current connection and records the reason in the backoff. */
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
    (!connection || (suspect && now() - connection.negotiatedAt > renegotiateAfterMs)) && now() >= backoff.nextAt;

  return {
    async send(request) {
      if (!closing && (negotiating || isDue())) {
        negotiating ??= negotiate().finally(() => {
          negotiating = undefined;
        });
        await negotiating;
      }
      if (closing) return { kind: "unprocessed", reason: backoff.reason || "the transport is closed" };
      if (!connection) return { kind: "unprocessed", reason: backoff.reason };
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

/** Asks the server for its protocol with ALPN. Rejects when the server cannot be reached. */
async function askProtocol(options: TransportOptions): Promise<Protocol> {
  const { promise, resolve, reject } = Promise.withResolvers<Protocol>();
  const { connectTimeoutMs: ms } = limitsOf(options);
  const socket = connectTls(options, { last: undefined }, await options.dial?.(), ["h2", "http/1.1"]);
  const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${ms} ms`)), ms);
  // A server without ALPN speaks HTTP/1.1.
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
