import { createServer } from "node:net";

/** A TCP port of 127.0.0.1 that nobody listens on right now; somebody may take it before you do, so be ready to retry. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address && typeof address === "object" ? resolve(address.port) : reject(new Error("no address")),
      );
    });
  });
}
