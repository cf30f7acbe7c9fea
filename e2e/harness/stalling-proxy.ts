import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Passes `bytes`, and then nothing more. */
const passing = (from: Socket, to: Socket, bytes: number): void => {
  let left = bytes;
  from.on("data", (chunk) => {
    to.write(chunk);
    left -= chunk.length;
    if (left <= 0) from.pause();
  });
};

/**
 * A proxy whose connections pass so many bytes of requests and of answers, and then nothing more: what uploads or reads through it stays
 * in the middle, so that a test can interrupt it there.
 */
export const stallingProxy = async (
  target: string,
  { requests = Number.POSITIVE_INFINITY, answers = Number.POSITIVE_INFINITY }: { requests?: number; answers?: number },
): Promise<{ url: string; stop: () => void }> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    passing(client, upstream, requests);
    passing(upstream, client, answers);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
