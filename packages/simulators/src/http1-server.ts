import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Identity } from "./certificates.ts";

const ignore = () => {};

/** A server over TLS that speaks HTTP/1.1 and nothing newer, as older push services do. What a script says of streams has no effect. */
export function createHttp1Server(identity: Identity) {
  const server = createServer({ key: identity.key, cert: identity.certificate, ALPNProtocols: ["http/1.1"] });
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on("error", ignore);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", ignore);
  server.on("clientError", (_, socket) => socket.destroy());

  return {
    server,
    /** There are no streams to begin. */
    begin: () => undefined,
    proven: ignore,
    /** Connections accepted since the start, and open ones. */
    connectionCount: () => ({ accepted, open: sockets.size }),

    /** @returns the port. @throws when it is taken */
    async listen(host: string, port: number): Promise<number> {
      server.listen(port, host);
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    },

    async stop(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export type Http1Server = ReturnType<typeof createHttp1Server>;
