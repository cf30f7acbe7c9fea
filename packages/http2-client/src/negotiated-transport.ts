import { createBackoff } from "./backoff.ts";
import { createHttp1Transport } from "./http1-transport.ts";
import { createHttp2Transport } from "./http2-transport.ts";
import { connectTls } from "./tls-socket.ts";
import { type Transport, type TransportOptions, transportDefaults } from "./transport.ts";

type Agreed = { readonly protocol: "h2" | "http/1.1" };
type Way = Agreed & { readonly transport: Transport; readonly agreedAt: number };

/** A server may learn HTTP/2, or lose it: when nothing can be sent any more it is asked again, so often. */
const askAgainMs = 60_000;

/**
 * HTTP/2 where the server speaks it, else HTTP/1.1: it is asked once, in a TLS handshake (ALPN), before the first request. That
 * costs a connection without a request, so it is for servers that strangers choose and that may be old.
 * The first request may take `connectTimeoutMs` longer than the transport's contract says.
 */
export function createNegotiatedTransport(options: TransportOptions, now = () => performance.now()): Transport {
  const backoff = createBackoff({ firstMs: 100, maxMs: 10_000 });
  const leaving = new Set<Promise<void>>();
  let way: Way | undefined;
  let asking: Promise<Way | undefined> | undefined;
  let doubted = false;
  let closing = false;

  const open = (protocol: Agreed["protocol"]) =>
    protocol === "h2" ? createHttp2Transport(options) : createHttp1Transport(options);
  const leave = ({ transport }: Way) => {
    const left: Promise<void> = transport.close().finally(() => leaving.delete(left));
    leaving.add(left);
  };

  /** Undefined when it cannot be reached; then the backoff knows why. */
  const agree = async (): Promise<Way | undefined> => {
    const answer = await askProtocol(options);
    if ("reason" in answer) {
      backoff.failed(now(), answer.reason);
      return undefined;
    }
    backoff.succeeded();
    doubted = false;
    if (closing) return undefined;
    const { protocol } = answer;
    const before = way;
    const transport = before?.protocol === protocol ? before.transport : open(protocol);
    if (before && before.transport !== transport) leave(before);
    way = { protocol, transport, agreedAt: now() };
    return way;
  };

  const current = (): Promise<Way | undefined> | Way | undefined => {
    if (way && !(doubted && now() - way.agreedAt > askAgainMs)) return way;
    if (now() < backoff.nextAt()) return way;
    asking ??= agree().finally(() => {
      asking = undefined;
    });
    return asking;
  };

  return {
    async send(request) {
      const chosen = closing ? undefined : await current();
      if (closing) return { kind: "unprocessed", reason: "the transport is closed" };
      if (!chosen) return { kind: "unprocessed", reason: backoff.reason() };
      const answer = await chosen.transport.send(request);
      if (answer.kind === "unprocessed") doubted = true;
      return answer;
    },
    async close() {
      closing = true;
      await asking;
      if (way) leave(way);
      way = undefined;
      await Promise.all(leaving);
    },
  };
}

function askProtocol(options: TransportOptions): Promise<Agreed | { readonly reason: string }> {
  return new Promise((resolve) => {
    const ms = options.connectTimeoutMs ?? transportDefaults.connectTimeoutMs;
    const socket = connectTls(options, { last: undefined }, ["h2", "http/1.1"]);
    const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${ms} ms`)), ms);
    const end = (answer: Agreed | { readonly reason: string }) => {
      clearTimeout(timer);
      resolve(answer);
      socket.destroy();
    };
    // Whoever names no protocol means the one from before there was a choice.
    socket.once("secureConnect", () => end({ protocol: socket.alpnProtocol === "h2" ? "h2" : "http/1.1" }));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      end({ reason: error.message || error.code || "the connection failed" }),
    );
    socket.once("close", () => end({ reason: "the connection was closed" }));
  });
}
