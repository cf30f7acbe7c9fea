import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Identity } from "./certificates.ts";
import { keepSockets } from "./keep-sockets.ts";
import type { Script } from "./script/script.ts";
import type { Provider } from "./simulator.ts";

/** What Apple's servers were seen to allow once a connection is proven. */
const maxConcurrentStreams = 1000;
/** The default of 65,535 bytes would make a sender of many small payloads wait for window updates. */
const connectionWindow = 1 << 20;

/** One client connection, as far as all providers see it. */
export interface Connection {
  readonly socket: TLSSocket;
  /** The client showed a certificate, whichever authority signed it. */
  readonly certified: boolean;
  /** Streams that began, those after a GOAWAY left out. */
  streams: number;
  /** Streams that began and are not closed yet. */
  open: number;
  /** The last stream that is processed: endless until a GOAWAY names it. */
  lastStream: number;
  /** Still limited to one stream, until `proven`. */
  oneStream: boolean;
}

interface H2ServerOptions {
  readonly provider: Provider;
  readonly identity: Identity;
  readonly script: Script;
  /** Answers HTTP/1.1 clients too. */
  readonly allowHttp1?: boolean;
  /** Asks for a client certificate, and goes on without one. */
  readonly requestCertificate?: boolean;
}

const ignore = () => {};

/** A socket that is closed with requests unread resets, and what was answered just before may never be read. */
const lingerMs = 500;

/** A strict HTTP/2 server over TLS (nghttp2 refuses malformed frames and headers) that can end connections as a script says. */
export function createH2Server({
  provider,
  identity,
  script,
  allowHttp1 = false,
  requestCertificate = false,
}: H2ServerOptions) {
  const server: Http2SecureServer = createSecureServer({
    key: identity.key,
    cert: identity.certificate,
    allowHTTP1: allowHttp1,
    requestCert: requestCertificate,
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams },
  });
  const connections = new WeakMap<ServerHttp2Session, Connection>();
  const { stop, ...sockets } = keepSockets(server);

  const limitStreams = () =>
    server.updateSettings({ maxConcurrentStreams: script.oneStreamStart(provider) ? 1 : maxConcurrentStreams });
  limitStreams();
  const stopListening = script.onChange(limitStreams);

  // Ours must run first: node makes the session in its own listener of this event, and hides the socket from then on.
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

  /** A graceful end: what began before is answered, then the connection goes, by the client's hand or a moment later by ours. */
  const sendGoaway = (
    session: ServerHttp2Session,
    connection: Connection,
    last: number,
    reason: string | undefined,
  ) => {
    connection.lastStream = last;
    const data = reason === undefined ? undefined : Buffer.from(JSON.stringify({ reason }));
    session.goaway(0, last, data);
  };

  return {
    server,

    /** Undefined for a stream after a GOAWAY: it must be left alone, as if it never came. */
    begin(stream: ServerHttp2Stream): Connection | undefined {
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
      if (rule !== undefined) sendGoaway(session as ServerHttp2Session, connection, id, rule.reason);
      return connection;
    },

    /** The connection has shown who it is: any number of streams from now on. */
    proven(stream: ServerHttp2Stream, connection: Connection): void {
      if (!connection.oneStream) return;
      connection.oneStream = false;
      (stream.session as ServerHttp2Session | undefined)?.settings({ maxConcurrentStreams });
    },

    ...sockets,

    async stop(): Promise<void> {
      stopListening();
      await stop();
    },
  };
}

export type H2Server = ReturnType<typeof createH2Server>;
