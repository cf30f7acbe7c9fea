import { once } from "node:events";
import * as http from "node:http";
import * as https from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";

export type ConnectProxy = {
  /** `http://127.0.0.1:<port>`, or `https://localhost:<port>` with `tls`. */
  readonly url: string;
  /** What it was asked for: `host:port` of each CONNECT, and its `proxy-authorization`. */
  readonly asked: readonly { readonly authority: string; readonly authorization: string | undefined }[];
  /** Open connections to it. */
  readonly connections: () => number;
  /** Its open tunnels. */
  readonly tunnels: () => number;
  readonly stop: () => Promise<void>;
};

type ProxyScript = {
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Written in place of a tunnel, such as `HTTP/1.1 403 Filtered\r\n\r\n`; empty: it never answers. Undefined: a tunnel. */
  readonly answer?: ((authority: string) => string | undefined) | undefined;
  /** The local port that stands for `host:port`. Undefined: the host and port themselves. */
  readonly portOf?: (authority: string) => number | undefined;
};

/** A proxy that opens tunnels by CONNECT and does nothing else, on a free port. */
export async function startConnectProxy({ tls, answer, portOf }: ProxyScript = {}): Promise<ConnectProxy> {
  const asked: { authority: string; authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  let tunnels = 0;
  const server = tls ? https.createServer(tls) : http.createServer();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.on("connect", ({ url: authority = "", headers }: http.IncomingMessage, client: Socket) => {
    asked.push({ authority, authorization: headers["proxy-authorization"] });
    client.on("error", () => {});
    const words = answer?.(authority);
    if (words !== undefined) {
      // Reads, so that it notices when the client goes away.
      client.resume().once("end", () => client.destroy());
      if (words !== "") client.end(words);
      return;
    }
    const { hostname, port } = new URL(`http://${authority}`);
    const own = portOf?.(authority);
    const target = connect(own ?? Number(port || 80), own === undefined ? hostname : "127.0.0.1");
    tunnels++;
    target.setNoDelay(true);
    target.once("connect", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(target).pipe(client);
    });
    target.once("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    target.once("close", () => {
      tunnels--;
      client.destroy();
    });
    client.once("close", () => target.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    asked,
    connections: () => sockets.size,
    tunnels: () => tunnels,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
