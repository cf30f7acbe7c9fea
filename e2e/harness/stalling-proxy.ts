import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy that passes `bytes` of what a server answers, and then nothing more: what reads through it stays in the middle, so that a test
 * can interrupt it there.
 */
export const stallingProxy = async (target: string, bytes: number): Promise<{ url: string; stop: () => void }> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let left = bytes;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => upstream.destroy());
    client.pipe(upstream);
    upstream.on("data", (chunk) => {
      client.write(chunk);
      left -= chunk.length;
      if (left <= 0) upstream.pause();
    });
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
