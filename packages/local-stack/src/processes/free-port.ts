import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Returns the port of 127.0.0.1 if it is free, or for 0 any free port. Another process may take it first, so be ready to retry. */
export async function freePort(port = 0): Promise<number> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  const free = (server.address() as AddressInfo).port;
  await once(server.close(), "close");
  return free;
}
