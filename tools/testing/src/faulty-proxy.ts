import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { freePort } from "@herald/provision";

export type FaultyProxy = {
  /** The target's URL with the proxy's address in it. */
  readonly url: string;
  /** Makes the dependency unavailable: breaks open connections and refuses new ones. */
  readonly cut: () => Promise<void>;
  /** Makes the dependency available again, on the same port. */
  readonly heal: () => Promise<void>;
  /** Bytes passed to the dependency by the connections that are open now. */
  readonly passed: () => number;
  readonly stop: () => Promise<void>;
};

/** Passes `bytes`, and then nothing more. */
const passSome = (from: Socket, to: Socket, bytes: number): void => {
  let left = bytes;
  from.on("data", (chunk) => {
    to.write(chunk);
    left -= chunk.length;
    if (left <= 0) from.pause();
  });
};

/**
 * A proxy between a client and a server. A test can make the server unavailable for one client without affecting others. With `requests`
 * or `answers` each connection passes about so many bytes of them and then stalls, so that a test can interrupt an upload or a download in
 * the middle.
 */
export async function faultyProxy(
  targetUrl: string,
  { requests, answers }: { readonly requests?: number; readonly answers?: number } = {},
): Promise<FaultyProxy> {
  const target = new URL(targetUrl);
  const defaultPort = target.protocol === "nats:" ? 4222 : 27017;
  const sockets = new Set<Socket>();
  const upstreams = new Set<Socket>();

  const server = createServer((client) => {
    const upstream = connect(Number(target.port) || defaultPort, target.hostname);
    upstreams.add(upstream);
    upstream.on("close", () => upstreams.delete(upstream));
    for (const [socket, peer, bytes] of [
      [client, upstream, requests],
      [upstream, client, answers],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => peer.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        peer.destroy();
      });
      if (bytes === undefined) socket.pipe(peer);
      else passSome(socket, peer, bytes);
    }
  });
  const port = await freePort(); // nobody else takes it during a cut
  const listen = async () => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  const cut = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) {
      // A socket that is shutting down cannot be reset, and Node would keep its handle forever.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
    await closed;
  };

  await listen();
  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  // A member of a replica set sends clients its own address, and they would bypass the proxy.
  if (url.protocol === "mongodb:") url.searchParams.set("directConnection", "true");
  return {
    url: url.href,
    cut,
    heal: async () => {
      if (!server.listening) await listen();
    },
    passed: () => [...upstreams].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
    stop: cut,
  };
}
