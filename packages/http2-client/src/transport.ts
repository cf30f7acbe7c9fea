import type { LookupFunction } from "node:net";

/** What a provider is sent: one HTTP/2 POST. Header names are lower case, without pseudo headers. */
export type TransportRequest = {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
};

/**
 * What came of it, always a value:
 * `answered`: the peer's whole answer, its body decoded as UTF-8 and cut at `maxBodyBytes`;
 * `unprocessed`: the peer certainly did not act on it, so it is safe to send again;
 * `unknown`: it was written and no whole answer came, so sending it again may repeat it.
 * Reasons are for people: they carry no token, key or body.
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
 * `send` never rejects for what the network or the peer did, and answers within `requestTimeoutMs` and a twentieth. It rejects with a
 * TypeError for a request that HTTP/2 cannot carry (a line break in a header), before anything is written.
 * A request that waits for a free stream stays in memory, so what a transport holds is bounded by what its callers have
 * under way at once: they limit their concurrency, the transport does not.
 *
 * `close` lets what was written finish for `closeTimeoutMs`, gives `unprocessed` to what was not, and leaves no socket.
 */
export type Transport = {
  send(request: TransportRequest): Promise<TransportAnswer>;
  close(): Promise<void>;
};

/** Times are milliseconds. What is left out gets the default of `transportDefaults`. */
export type TransportOptions = {
  /** `https://host[:port]`; nothing else is ever connected to. */
  readonly origin: string;
  /** PEM of the only authorities to trust, instead of the system's. */
  readonly ca?: string | undefined;
  /** PEM of a client certificate and its key, where the provider authenticates connections. */
  readonly certificate?: string | undefined;
  readonly privateKey?: string | undefined;
  /** Resolves the host at every connect; a guard may refuse addresses here, after which no socket is opened. */
  readonly lookup?: LookupFunction | undefined;
} & Partial<TransportLimits>;

export type TransportLimits = {
  /** Connections that may carry new requests at once. */
  readonly connections: number;
  /** Requests under way on one connection; the peer's own limit wins where it is lower. */
  readonly maxInFlight: number;
  /** From `send` to its answer, waiting included. */
  readonly requestTimeoutMs: number;
  /** From the first packet to the peer's SETTINGS. */
  readonly connectTimeoutMs: number;
  /** How long a PING may stay unanswered before the connection counts as dead. */
  readonly pingTimeoutMs: number;
  readonly pingIntervalMs: number;
  /** A connection that carried nothing for so long is closed. */
  readonly idleTimeoutMs: number;
  readonly closeTimeoutMs: number;
  readonly maxBodyBytes: number;
  /** How often a request that was certainly not processed is sent again before its caller hears of it. */
  readonly maxResends: number;
  /** Streams that one connection opens before another replaces it. */
  readonly maxStreams: number;
};

const transportDefaults: TransportLimits = {
  connections: 4, // one Node thread feeds them all, so more only helps against a peer's limit of streams and the loss of one
  maxInFlight: 1_000, // what APNs announces
  requestTimeoutMs: 20_000, // a provider that needs longer is in trouble; the bus must wait 5 s longer than this
  connectTimeoutMs: 5_000, // TCP, TLS and SETTINGS take three round trips
  pingTimeoutMs: 5_000,
  pingIntervalMs: 60_000, // shorter than the idle time after which NATs and load balancers forget a connection
  idleTimeoutMs: 600_000, // providers ask to keep connections, a service with a thousand projects cannot keep them all
  closeTimeoutMs: 5_000,
  maxBodyBytes: 65_536, // a provider's answer is some hundred bytes
  maxResends: 64, // a GOAWAY every 50 streams sends a request again about six times
  maxStreams: 500_000_000, // odd ids below 2^31 are half as many as ids: 1,073,741,823, kept away from
};

/** Every limit, with the defaults of what is not given or undefined. */
export const limitsOf = (options: Partial<TransportLimits>): TransportLimits => ({
  ...transportDefaults,
  ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
});
