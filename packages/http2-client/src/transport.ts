import type { LookupFunction } from "node:net";
import type { Dial } from "@herald/kit";

/** One request to a provider. Header names are lower case, without pseudo headers. */
export type TransportRequest = {
  /** Over HTTP/2 alone; absent: POST. */
  readonly method?: "GET" | "DELETE" | undefined;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
};

/**
 * The outcome of a request, never an exception:
 * `answered`: the peer's whole answer, its body decoded as UTF-8 and cut at `maxBodyBytes`;
 * `unprocessed`: the peer certainly did not act on the request, so it is safe to send again;
 * `unknown`: the request was written but no whole answer came, so sending it again may repeat it.
 * A `reason` is text for people: it contains no token, key or body.
 */
export type TransportAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: Readonly<Record<string, string | undefined>>;
      readonly body: string;
    }
  | { readonly kind: "unprocessed"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

/**
 * A way to send to one origin.
 *
 * `send` never rejects because of the network or the peer. It resolves within `requestTimeoutMs` plus 5 %. It rejects with a
 * TypeError for a request that HTTP/2 cannot carry (a line break in a header), before anything is written.
 * A request that waits for a free stream stays in memory. The transport does not limit how many wait: its callers limit their
 * concurrency.
 *
 * `close` gives written requests `closeTimeoutMs` to finish, ends all others as `unprocessed`, and leaves no socket open.
 */
export type Transport = {
  send(request: TransportRequest): Promise<TransportAnswer>;
  close(): Promise<void>;
};

/** Missing limits get their value from `transportDefaults`. */
export type TransportOptions = {
  /** `https://host[:port]`, the only server that the transport connects to. */
  readonly origin: string;
  /** PEM of the only authorities to trust, instead of the system's. */
  readonly ca?: string | undefined;
  /** PEM of a client certificate and its key, where the provider authenticates connections. */
  readonly certificate?: string | undefined;
  readonly privateKey?: string | undefined;
  /** Resolves the host at every connect. A guard may refuse addresses here; then no socket is opened. */
  readonly lookup?: LookupFunction | undefined;
  /** Opens each connection, on which TLS with the origin then begins, in place of a direct one to the host. */
  readonly dial?: Dial | undefined;
} & Partial<TransportLimits>;

/** Every limit, with its default. Times are milliseconds. */
const transportDefaults = {
  /** Connections that may carry new requests at once. */
  connections: 4, // one Node thread feeds all of them, so more only help against a peer's stream limit or a lost connection
  /** Concurrent requests on one connection. The peer's own limit applies if it is lower. */
  maxInFlight: 1_000, // the value that APNs announces
  /** From `send` to its answer, including the wait for a stream. */
  requestTimeoutMs: 20_000, // a provider that needs longer has a problem; the bus must wait 5 s longer than this
  /** From the first packet to the peer's SETTINGS. */
  connectTimeoutMs: 5_000, // TCP, TLS and SETTINGS take three round trips
  /** How long a PING may stay unanswered before the connection counts as dead. */
  pingTimeoutMs: 5_000,
  pingIntervalMs: 60_000, // shorter than the idle timeout of NATs and load balancers
  /** A connection without a request for this long is closed. */
  idleTimeoutMs: 600_000, // providers ask clients to keep connections, but a service with a thousand projects cannot keep them all
  closeTimeoutMs: 5_000,
  maxBodyBytes: 65_536, // a provider's answer has a few hundred bytes
  /** How often the transport repeats a request that was certainly not processed, before it returns `unprocessed`. */
  maxResends: 64, // a GOAWAY every 50 streams sends a request again about six times
  /** Streams that one connection opens before another replaces it. */
  maxStreams: 500_000_000, // far below the 1,073,741,824 odd stream ids under 2^31
};

export type TransportLimits = Readonly<typeof transportDefaults>;

/** Every limit, with defaults for those that are missing or undefined. */
export const limitsOf = (options: Partial<TransportLimits>): TransportLimits => ({
  ...transportDefaults,
  ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
});

const pathPattern = /^\/[\x21-\x7e]*$/;
const headerNamePattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const headerValuePattern = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;
const connectionHeaders = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "host",
]);

const namesRemembered = 64; // a provider has about eight

/**
 * Creates a check that throws a TypeError for a path or header that HTTP/2 cannot carry, or that could inject a header.
 * Most values repeat those of the previous request, so the check remembers the last valid value of each name.
 */
export function createRequestCheck(): (request: TransportRequest) => void {
  const good = new Map<string, string>();
  return ({ path, headers }) => {
    if (!pathPattern.test(path)) throw new TypeError("the path must be visible ASCII and begin with a slash");
    for (const name in headers) {
      const value = headers[name] ?? "";
      const before = good.get(name);
      if (before === value) continue;
      if (before === undefined) assertName(name);
      if (!headerValuePattern.test(value)) throw new TypeError(`the value of the header ${name} is not visible ASCII`);
      if (before !== undefined || good.size < namesRemembered) good.set(name, value);
    }
  };
}

function assertName(name: string): void {
  if (!headerNamePattern.test(name))
    throw new TypeError(`the header name ${JSON.stringify(name)} is not a lower-case token`);
  if (connectionHeaders.has(name)) throw new TypeError(`the header ${name} has no place in HTTP/2`);
}

/** Waits until nothing is open. Any number of callers may wait. */
export function createClosing(isEmpty: () => boolean) {
  const waiting: (() => void)[] = [];
  return {
    /** Call this after each end. */
    check(): void {
      if (isEmpty()) for (const resolve of waiting.splice(0)) resolve();
    },
    /** Resolves when nothing is open. Calls `giveUp` after `timeoutMs`, which must end everything that is still open. */
    async within(timeoutMs: number, giveUp: () => void): Promise<void> {
      if (isEmpty()) return;
      const deadline = setTimeout(giveUp, timeoutMs);
      await new Promise<void>((resolve) => waiting.push(resolve));
      clearTimeout(deadline);
    },
  };
}
