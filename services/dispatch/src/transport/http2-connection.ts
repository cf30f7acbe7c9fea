import { type ClientHttp2Session, connect } from "node:http2";
import { isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { failureWords } from "@herald/kit";
import { abandonExchange, type Exchange, type ExchangeOwner, startExchange } from "./http2-exchange.ts";
import type { TransportAnswer, TransportLimits, TransportOptions, TransportRequest } from "./transport.ts";

export type ConnectionEvents<Job> = {
  /** A place for a request may be free, or the connection takes none any more. */
  changed(): void;
  finished(job: Job, answer: TransportAnswer): void;
  /** The socket is gone. `served`: it answered at least one request; else the attempt was in vain. */
  closed(connection: Connection<Job>, served: boolean, reason: string): void;
};

/** One HTTP/2 session over TLS, from its first packet to its last. */
export type Connection<Job> = {
  /** Takes new requests, or will once it is connected and known to be alive. */
  usable(): boolean;
  connecting(): boolean;
  /** How many more requests may be written now. */
  room(): number;
  send(job: Job, request: TransportRequest): Exchange<Job>;
  /** Nobody waits for that answer any more: cancels it, and asks the peer whether it is still there. */
  abandon(exchange: Exchange<Job>): void;
  /** No new requests; closes once the last answer is here. */
  drain(): void;
  destroy(reason: string): void;
};

const FIRST_STREAMS = 100; // RFC 9113 asks servers to allow at least as many
const REFUSALS_OF_A_BROKEN_PEER = 10; // in a row, one stream at a time: it serves nobody
const SESSION_MEMORY_MB = 64; // 1,000 streams with 4 KiB each and their bookkeeping exceed the default of 10
const DEBUG_DATA_SHOWN = 120;

/** Requests are written only after the peer's SETTINGS: until then it may allow one stream, as APNs does. */
export function openConnection<Job>(
  options: TransportOptions,
  limits: TransportLimits,
  events: ConnectionEvents<Job>,
): Connection<Job> {
  const { host, hostname, port } = new URL(options.origin);
  const head = [":method", "POST", ":scheme", "https", ":authority", host];
  let state: "connecting" | "open" | "draining" | "closed" = "connecting";
  let suspect = false;
  let pinging = false;
  let lingering: NodeJS.Timeout | undefined;
  let peerLimit = 0;
  let inFlight = 0;
  let opened = 0;
  let answered = 0;
  let lastUsed = performance.now();
  let reason = "the peer closed the connection";
  // Grows by one with each answer and halves when the peer refuses streams below its own limit: a peer that goes away
  // after 50 streams, or promises more than it serves, then costs few repeats.
  let window = Math.min(FIRST_STREAMS, limits.maxInFlight);
  let halvedAt = 0;
  let refusals = 0;

  const address = hostname.replace(/^\[|\]$/g, "");
  const socket = connectTls({
    host: address,
    port: Number(port || 443),
    ...(isIP(address) ? {} : { servername: address }),
    ALPNProtocols: ["h2"],
    ca: options.ca,
    cert: options.certificate,
    key: options.privateKey,
    lookup: options.lookup,
  });
  const session: ClientHttp2Session = connect(options.origin, {
    createConnection: () => socket,
    maxSessionMemory: SESSION_MEMORY_MB,
    settings: { enablePush: false },
  });

  const owner: ExchangeOwner<Job> = {
    maxBodyBytes: limits.maxBodyBytes,
    lastProcessed: Number.POSITIVE_INFINITY,
    finished(job, streamId, answer) {
      inFlight--;
      if (answer.kind === "answered") {
        answered++;
        refusals = 0;
        if (window < limits.maxInFlight) window++;
      } else if (answer.kind === "unprocessed" && state === "open") {
        refused(streamId ?? 0);
      }
      if (state === "draining") finish();
      events.finished(job, answer);
      events.changed();
    },
  };

  /** All refusals of streams that were open at the same time are one sign, not many. */
  function refused(streamId: number): void {
    if (++refusals >= REFUSALS_OF_A_BROKEN_PEER && window === 1) {
      reason = "the peer refuses every stream";
      answered = 0;
      drain();
    } else if (streamId > halvedAt) {
      window = Math.max(1, Math.floor(Math.min(window, inFlight + 1) / 2));
      halvedAt = opened * 2;
    }
  }

  function drain(): void {
    if (state === "open") state = "draining";
    if (state === "connecting") destroy("closed while connecting");
    else finish();
  }

  /** Closes once nothing is under way. Node waits for the peer's end of the socket, for ever if need be: this does not. */
  function finish(): void {
    if (inFlight > 0 || lingering !== undefined || state === "closed") return;
    session.close();
    lingering = setTimeout(() => socket.destroy(), limits.closeTimeoutMs);
  }

  function destroy(why: string): void {
    reason = why;
    session.destroy(new Error(why));
    socket.destroy(); // the session alone would first wait for a peer that may be gone
  }

  const alive = () => !session.closed && !session.destroyed;

  function ping(): void {
    if (pinging || state === "connecting" || session.destroyed) return;
    pinging = true;
    const deadline = setTimeout(() => destroy("the peer does not answer PING"), limits.pingTimeoutMs);
    session.ping((error) => {
      clearTimeout(deadline);
      pinging = false;
      if (error !== null || !suspect) return;
      suspect = false;
      events.changed();
    });
  }

  const connectDeadline = setTimeout(
    () => destroy(`no HTTP/2 connection within ${limits.connectTimeoutMs} ms`),
    limits.connectTimeoutMs,
  );
  const heartbeat = setInterval(() => {
    if (inFlight === 0 && performance.now() - lastUsed >= limits.idleTimeoutMs) drain();
    else ping();
  }, limits.pingIntervalMs);
  heartbeat.unref();

  socket.on("error", (error) => {
    // Node leaves the session hanging when the peer's TLS refuses this side after its own handshake is done.
    reason = failureWords(error);
    socket.destroy();
  });
  session.on("connect", () => {
    if (session.alpnProtocol !== "h2") destroy("the peer does not speak HTTP/2");
  });
  session.on("remoteSettings", ({ maxConcurrentStreams }) => {
    clearTimeout(connectDeadline);
    peerLimit = maxConcurrentStreams ?? Number.POSITIVE_INFINITY;
    if (state === "connecting") state = "open";
    events.changed();
  });
  session.on("goaway", (code, lastStreamId, data) => {
    // Node ends a session whose GOAWAY carries an error at once: answers still to come for lower streams are lost.
    owner.lastProcessed = Math.min(owner.lastProcessed, lastStreamId);
    if (state !== "closed") state = "draining";
    reason = `GOAWAY with code ${code}${readable(data)}`;
    finish();
    events.changed();
  });
  session.on("error", (error) => {
    reason = failureWords(error);
  });
  session.on("close", () => {
    state = "closed";
    clearTimeout(connectDeadline);
    clearInterval(heartbeat);
    clearTimeout(lingering);
    events.closed(connection, answered > 0, reason);
  });

  const connection: Connection<Job> = {
    usable: () => state === "connecting" || (state === "open" && !suspect && alive()),
    connecting: () => state === "connecting",
    room: () => (state === "open" && !suspect && alive() ? Math.min(window, peerLimit) - inFlight : 0),
    send(job, request) {
      const exchange = startExchange(session, head, request, owner, job);
      inFlight++;
      lastUsed = performance.now();
      if (++opened >= limits.maxStreams) drain();
      return exchange;
    },
    abandon(exchange) {
      suspect = true;
      abandonExchange(exchange);
      ping();
    },
    drain,
    destroy,
  };
  return connection;
}

/** Debug data of a GOAWAY is the peer's to choose: APNs puts its reason there. */
function readable(data: Uint8Array | undefined): string {
  if (data === undefined || data.length === 0) return "";
  const text = Buffer.from(data.subarray(0, DEBUG_DATA_SHOWN)).toString("latin1");
  return `: ${text.replace(/[^\x20-\x7e]/g, "?")}`;
}
