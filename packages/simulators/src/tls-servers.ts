import { once } from "node:events";
import {
  createSecureServer,
  type Http2SecureServer,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Deps } from "./deps.ts";
import type { SimulatedProvider } from "./types.ts";

/** The limit of Apple's real servers on an authenticated connection. */
const maxConcurrentStreams = 1000;
/** The default of 65,535 bytes would make a sender of many small payloads wait for window updates. */
const connectionWindow = 1 << 20;

/** The state of one client connection that all providers share. */
export interface ClientConnection {
  readonly socket: TLSSocket;
  /** The client sent a certificate, signed by any authority. */
  readonly certified: boolean;
  /** Opened streams, without those after a GOAWAY. */
  streams: number;
  /** Streams that are open now. */
  open: number;
  /** The last stream that the server processes: infinite before a GOAWAY. */
  lastStream: number;
  /** Whether the connection is limited to one stream, until `proven`. */
  oneStream: boolean;
}

const ignore = () => {};

/** Closing a socket with unread requests resets it, so the client might lose the last answers. This pause prevents that. */
const lingerMs = 500;

/** A strict HTTP/2 server over TLS (nghttp2 refuses malformed frames and headers) that ends connections when a script says so. */
export function createH2Server(
  provider: SimulatedProvider,
  { identity, script, host, publicHost }: Deps,
  options: SecureServerOptions = {},
) {
  const server: Http2SecureServer = createSecureServer({
    key: identity.key,
    cert: identity.certificate,
    // A client may send a certificate of any authority, if the options request one.
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams },
    ...options,
  });
  const connections = new WeakMap<ServerHttp2Session, ClientConnection>();
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on("error", ignore);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", ignore);

  const limitStreams = () =>
    server.updateSettings({ maxConcurrentStreams: script.oneStreamStart(provider) ? 1 : maxConcurrentStreams });
  limitStreams();
  const stopListening = script.onChange(limitStreams);

  // This listener must run first: node creates the session in its own listener of this event and hides the socket afterwards.
  let arriving: TLSSocket | undefined;
  server.prependListener("secureConnection", (socket: TLSSocket) => {
    socket.on("error", ignore);
    arriving = socket;
  });
  server.on("session", (session) => {
    session.on("error", ignore);
    session.setLocalWindowSize(connectionWindow);
    if (arriving === undefined) return;
    const oneStream = script.oneStreamStart(provider);
    connections.set(session, {
      socket: arriving,
      certified: Object.keys(arriving.getPeerCertificate()).length > 0,
      streams: 0,
      open: 0,
      lastStream: Number.POSITIVE_INFINITY,
      oneStream,
    });
  });
  server.on("sessionError", ignore);

  return {
    server,

    /** Registers a new stream. Undefined for a stream after a GOAWAY, which the caller must ignore. */
    begin(stream: ServerHttp2Stream): ClientConnection | undefined {
      stream.on("error", ignore);
      const { session, id } = stream;
      const connection = session === undefined ? undefined : connections.get(session as ServerHttp2Session);
      if (session === undefined || id === undefined || connection === undefined || id > connection.lastStream)
        return undefined;
      connection.streams += 1;
      connection.open += 1;
      stream.on("close", () => {
        connection.open -= 1;
        if (connection.open === 0 && connection.lastStream !== Number.POSITIVE_INFINITY)
          setTimeout(() => session.destroy(), lingerMs).unref();
      });
      const rule = script.goaway(provider, connection.streams);
      if (rule !== undefined) {
        // Ends the connection gracefully: answers the open streams, then the client closes it, or this server does a moment later.
        connection.lastStream = id;
        session.goaway(
          0,
          id,
          rule.reason === undefined ? undefined : Buffer.from(JSON.stringify({ reason: rule.reason })),
        );
      }
      return connection;
    },

    /** Removes the limit of one stream, because the connection is authenticated. */
    proven(stream: ServerHttp2Stream, connection: ClientConnection): void {
      if (!connection.oneStream) return;
      connection.oneStream = false;
      (stream.session as ServerHttp2Session | undefined)?.settings({ maxConcurrentStreams });
    },

    /** Connections accepted since the start, and open ones. */
    connectionCount: () => ({ accepted, open: sockets.size }),

    /** Resolves to the origin, without a trailing slash. @throws when the port is taken */
    async listen(port: number): Promise<string> {
      server.listen(port, host);
      await once(server, "listening");
      return `https://${publicHost}:${(server.address() as AddressInfo).port}`;
    },

    /** Drops every connection and frees the port. */
    async stop(): Promise<void> {
      stopListening();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export type H2Server = ReturnType<typeof createH2Server>;
