import type { AddressInfo } from "node:net";
import { createServer } from "node:net";

/** Returns the port of 127.0.0.1 if it is free, or for 0 any free port. Another process may take it first, so be ready to retry. */
export function freePort(port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
