import type { AddressInfo } from "node:net";
import type { Express } from "express";

/** Serves a floor until SIGTERM, and prints its address as one line on stdout. `close` releases its resources. */
export const listenFloor = (app: Express, close: () => Promise<unknown>): void => {
  const server = app.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid })}\n`);
  });
  process.once("SIGTERM", async () => {
    server.closeAllConnections();
    server.close();
    await close();
  });
};
