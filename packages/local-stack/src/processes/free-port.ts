import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that Linux, macOS and Windows give to outgoing connections and to servers that ask for any port. */
const [firstPort, blocks, blockSize] = [20_000, 120, 100];

/**
 * Returns the port of 127.0.0.1 if it is free, or for 0 any free port. The system gives such a port to nobody, nor does another process
 * that asks here, so it stays free until a server takes it, and while that server restarts.
 */
export async function freePort(port = 0): Promise<number> {
  if (port > 0) {
    const server = await listen(port);
    await once(server.close(), "close");
    return port;
  }
  block ??= takeBlock();
  const first = await block;
  for (let tries = 1; tries < blockSize; tries++) {
    given = (given % (blockSize - 1)) + 1;
    const next = first + given;
    if (await freePort(next).catch(() => undefined)) return next;
  }
  throw new Error(`no port of 127.0.0.1 from ${first} to ${first + blockSize - 1} is free`);
}

/** The block of this process, and the place in it of the last port that was given. */
let block: Promise<number> | undefined;
let given = 0;

/** A process owns the block on whose first port it listens, for as long as it runs. */
async function takeBlock(): Promise<number> {
  const start = randomInt(blocks);
  for (let index = 0; index < blocks; index++) {
    const first = firstPort + ((start + index) % blocks) * blockSize;
    const server = await listen(first).catch(() => undefined);
    if (server === undefined) continue;
    server.unref();
    return first;
  }
  throw new Error(`no block of ports of 127.0.0.1 from ${firstPort} is free`);
}

async function listen(port: number) {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}
