import { type ClientHttp2Session, connect } from "node:http2";
import { failureWords } from "@herald/kit";
import { createAllowance } from "../http2/concurrency-limit.ts";
import { type Connection, goawayWords, type OpenConnection } from "../http2/connection-types.ts";
import { createLiveness } from "../http2/keepalive.ts";
import { connectTls } from "../tls-socket.ts";
import { abandonExchange, type Exchange, type ExchangeOwner, startExchange } from "./http2-exchange.ts";

const SESSION_MEMORY_MB = 64; // 1,000 streams with 4 KiB each and their bookkeeping exceed the default of 10

/** A connection over `node:http2`: slower than one framed here, and somebody else's code. */
export const openHttp2Connection: OpenConnection = (options, limits, events, tickets) => {
  const head = [":method", "POST", ":scheme", "https", ":authority", new URL(options.origin).host];
  const exchanges = new Map<number, Exchange>();
  const allowance = createAllowance(limits.maxInFlight);
  let state: "connecting" | "open" | "draining" | "closed" = "connecting";
  let lingering: NodeJS.Timeout | undefined;
  let peerLimit = 0;
  let inFlight = 0;
  let opened = 0;
  let answered = 0;
  let lastUsed = performance.now();
  let reason = "the peer closed the connection";

  const socket = connectTls(options, tickets);
  const session: ClientHttp2Session = connect(options.origin, {
    createConnection: () => socket,
    maxSessionMemory: SESSION_MEMORY_MB,
    settings: { enablePush: false },
  });

  const owner: ExchangeOwner = {
    maxBodyBytes: limits.maxBodyBytes,
    lastProcessed: Number.POSITIVE_INFINITY,
    finished(job, streamId = 0, answer) {
      inFlight--;
      exchanges.delete(streamId);
      if (answer.kind === "answered") {
        answered++;
        allowance.answered();
      } else if (answer.kind === "unprocessed" && state === "open") {
        if (allowance.refused(streamId, opened * 2, inFlight)) {
          reason = "the peer refuses every stream";
          answered = 0;
          drain();
        }
      }
      if (state === "draining") finish();
      events.finished(job, answer);
      events.changed();
    },
  };

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

  const liveness = createLiveness({
    limits,
    ping() {
      if (state === "connecting" || session.destroyed) return false;
      return session.ping((error) => {
        if (error === null) liveness.alive();
      });
    },
    idleSince: () => (inFlight === 0 ? lastUsed : undefined),
    dead: () => destroy("the peer does not answer PING"),
    idle: drain,
    cleared: events.changed,
  });
  const connectDeadline = setTimeout(
    () => destroy(`no HTTP/2 connection within ${limits.connectTimeoutMs} ms`),
    limits.connectTimeoutMs,
  );

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
    reason = goawayWords(code, data);
    finish();
    events.changed();
  });
  session.on("error", (error) => {
    reason = failureWords(error);
  });
  session.on("close", () => {
    state = "closed";
    clearTimeout(connectDeadline);
    clearTimeout(lingering);
    liveness.stop();
    events.closed(connection, answered > 0, reason);
  });

  const connection: Connection = {
    usable: () => state === "connecting" || (state === "open" && !liveness.suspect() && alive()),
    connecting: () => state === "connecting",
    room: () =>
      state === "open" && !liveness.suspect() && alive() ? Math.min(allowance.streams(), peerLimit) - inFlight : 0,
    send(job) {
      const exchange = startExchange(session, head, owner, job);
      job.streamId = exchange.id ?? 0;
      exchanges.set(job.streamId, exchange);
      inFlight++;
      lastUsed = performance.now();
      if (++opened >= limits.maxStreams) drain();
    },
    abandon({ streamId }) {
      const exchange = exchanges.get(streamId);
      if (exchange !== undefined) abandonExchange(exchange);
      liveness.doubt();
    },
    drain,
    destroy,
  };
  return connection;
};
