import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

const ignore = () => {};

/** Counts the connections of a server, and drops them all when it stops. */
export function keepSockets(server: Server) {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on("error", ignore);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", ignore);

  return {
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
