import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that Linux, macOS and Windows give to outgoing connections and to servers that ask for any port. */
const [firstPort, blocks, blockSize] = [20_000, 120, 100];

/**
 * Returns the port of 127.0.0.1 if it is free, or for 0 any free port. The system gives such a port to nobody, nor does another process
 * that asks here, nor this one a second time, so it stays free until a server takes it, and while that server restarts.
 */
export async function freePort(port = 0): Promise<number> {
  if (port > 0) {
    const server = await listen(port);
    await once(server.close(), "close");
    return port;
  }
  for (;;) {
    if (given === blockSize - 1) [block, given] = [undefined, 0];
    block ??= takeBlock();
    given += 1;
    const [first, place] = [block, given]; // another call may change them while this one waits
    const next = (await first) + place;
    if (await freePort(next).catch(() => undefined)) return next;
  }
}

/** The newest block of this process, and how many of its ports were given. */
let block: Promise<number> | undefined;
let given = 0;

/** A process owns the blocks on whose first ports it listens, for as long as it runs. */
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
