import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { HeraldError, toProblem } from "../herald-error.ts";
import { listen } from "../listen.ts";
import { type ConnectionLimit, createConnections } from "./address-limits.ts";

const defaultTimeouts = {
  /** To receive all headers. */
  headersMs: 10_000,
  /** To receive the whole request. */
  requestMs: 30_000,
  /** For the client to read the whole response. Event streams have their own limit. */
  responseMs: 30_000,
  /** To receive the rest of a request after its response: many round trips, so that the client has read the response before. */
  restMs: 2_000,
  /** How long an idle connection stays open. Longer than in a load balancer, which otherwise sends into a closed connection. */
  keepAliveMs: 65_000,
};

/**
 * Connections that the system completes before the process accepts them, if its own limit allows as many. After a broadcast, phones connect
 * by the thousand; with Node's 511, the others try again after one second or several.
 */
const backlog = 4_096;

/** Room for a long credential, a trace and a proxy's additions; Node's own default. */
const maxHeaderBytes = 16_384;
/** Intervals of the checks for slow requests, and for idle connections during a stop. */
const timeoutCheckMs = 1_000;
const idleCheckMs = 50;

export type HttpServer = {
  /** Its base URL. */
  readonly address: string;
  readonly port: number;
  /** How many connections are open. */
  readonly connections: () => number;
  /** Accepts no new connections, finishes requests in flight, and closes the rest at the deadline. */
  readonly stop: (deadlineMs: number) => Promise<void>;
};

/** Answers without a response object of Node, and closes the connection. */
const respondOnSocket = (socket: Socket, error: HeraldError, status?: number): void => {
  const requestId = randomUUID();
  const problem = toProblem(error, requestId);
  const code = status ?? problem.status;
  const text = `${JSON.stringify({ ...problem.body, status: code })}\n`;
  const headers = {
    ...problem.headers,
    connection: "close",
    "content-length": Buffer.byteLength(text),
    "x-request-id": requestId,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(
    [`HTTP/1.1 ${code} ${STATUS_CODES[code]}`, ...lines, "", text].join("\r\n"),
    // A client that does not read the response must not keep the socket.
    () => socket.destroy(),
  );
};

/** Connections whose request may arrive more slowly than others. */
const longUploads = new WeakSet<Duplex>();

/**
 * Lets the body of this request arrive in any time: its route limits the speed instead. Call the result when the route has read what it
 * needs: later requests of the connection have the usual time.
 */
export const allowLongUpload = ({ socket }: IncomingMessage): (() => void) => {
  longUploads.add(socket);
  return () => longUploads.delete(socket);
};

/** Answers requests that Node cannot parse, or that arrive too slowly. */
const handleClientError = (error: Error & { code?: string }, socket: Socket): void => {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && longUploads.has(socket)) return;
  if (error.code === "ECONNRESET" || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [status, problem] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [431, `headers: are larger than ${maxHeaderBytes} bytes`]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [408, "request: took too long to arrive"]
        : [400, "request: is not HTTP/1.1 as RFC 9112 describes it"];
  respondOnSocket(socket, new HeraldError("malformed-request", String(problem)), Number(status));
};

/** Limits the time that a client takes to read the response, and to send the rest of its request. One listener does for both. */
const limitTimes = (request: IncomingMessage, response: ServerResponse, timeouts: typeof defaultTimeouts): void => {
  response.once("prefinish", () => {
    limitResponseTime(response, request.socket, timeouts.responseMs);
    if (!request.complete) limitRest(request, response, timeouts.restMs);
  });
};

/** Disconnects a client that does not read its complete response, which would otherwise stay in memory. */
const limitResponseTime = (response: ServerResponse, socket: Socket, withinMs: number): void => {
  if (socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), withinMs);
  response.once("close", () => clearTimeout(timer));
};

/**
 * Reads the rest of a request that was answered before its end, such as a refused upload, and disconnects a client that goes on sending. A
 * connection that is closed with unread bytes is reset, and the client may lose the response.
 */
const limitRest = (request: IncomingMessage, response: ServerResponse, withinMs: number): void => {
  const { socket } = request;
  // Node calls it after the last response of a connection: the client learns of the end, and may still send, but not stay.
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), withinMs).unref();
  };
  // An iterator that has stopped reading would keep the body paused.
  request.removeAllListeners("readable").resume();
  response.once("finish", () => {
    if (request.complete) return;
    const timer = setTimeout(() => socket.destroy(), withinMs);
    request.once("close", () => clearTimeout(timer));
  });
};

/** Serves an app. Port 0 selects any free port, shown in `address`. Rejects when the port is in use, and names the `variable` that sets it. */
export const startHttp = async (
  app: RequestListener,
  {
    host,
    port,
    timeouts = defaultTimeouts,
    limit,
    variable = "HERALD_PORT",
  }: { host: string; port: number; variable?: string; timeouts?: typeof defaultTimeouts; limit?: ConnectionLimit },
): Promise<HttpServer> => {
  let stopping = false;
  const connections = createConnections(limit);
  const server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      connectionsCheckingInterval: timeoutCheckMs,
      // `requireHost` checks it, and answers with problem details.
      requireHostHeader: false,
      noDelay: true,
    },
    (request, response) => {
      // The connection was refused, and its response is being sent.
      if (!connections.beginRequest(request.socket, response)) return;
      if (stopping) response.setHeader("connection", "close");
      limitTimes(request, response, timeouts);
      app(request, response);
    },
  );
  server.on("connection", (socket) => {
    const refusal = connections.accept(socket);
    if (refusal) respondOnSocket(socket, refusal);
  });
  server.on("clientError", (error: Error, socket) => handleClientError(error, socket as Socket));
  await listen(server, { port, host, backlog, variable });
  const { port: actual } = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;

  const stop: HttpServer["stop"] = (deadlineMs) =>
    new Promise((resolve) => {
      stopping = true;
      const closeIdle = () => {
        server.closeIdleConnections();
        // Node counts a connection without any received bytes as busy.
        for (const socket of connections.sockets()) if (socket.bytesRead === 0) socket.destroy();
      };
      const idle = setInterval(closeIdle, idleCheckMs);
      const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
      server.close(() => {
        clearInterval(idle);
        clearTimeout(deadline);
        resolve();
      });
    });

  return { address: `http://${name}:${actual}`, port: actual, connections: connections.count, stop };
};
