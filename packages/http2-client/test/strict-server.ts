import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type TlsOptions } from "node:tls";
import { localhostCertificate } from "./certificates.ts";
import { createStrictPeer, type PeerScript, type StrictPeer } from "./strict-peer.ts";

export type StrictServer = Awaited<ReturnType<typeof startStrictServer>>;

const identity = localhostCertificate();

/** A TLS server on a free port with hand-written HTTP/2. It answers as scripted and lists the client's protocol errors. */
export async function startStrictServer(script: PeerScript, tls: TlsOptions = {}) {
  const { certificate, privateKey } = await identity;
  const peers: StrictPeer[] = [];
  const violations: string[] = [];
  const options = { cert: certificate, key: privateKey, ALPNProtocols: ["h2"], noDelay: true, ...tls };
  const server = createServer(options, (socket) => {
    peers.push(createStrictPeer(peers.length + 1, socket, script, violations));
  });
  server.on("tlsClientError", () => {}); // clients that do not trust it are part of the tests
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    ca: certificate,
    peers,
    violations,
    connected: () => peers.filter(({ socket }) => !socket.destroyed).length,
    async close() {
      for (const peer of peers) peer.cut();
      server.close();
      await once(server, "close");
    },
  };
}

/** Counts the requests that a server processed, by the id in their body. */
export function createCounter() {
  const acted = new Map<string, number>();
  return {
    act: (id: string) => acted.set(id, (acted.get(id) ?? 0) + 1),
    get total() {
      return acted.size;
    },
    get repeated() {
      return [...acted].filter(([, times]) => times > 1).map(([id]) => id);
    },
    times: (id: string) => acted.get(id) ?? 0,
  };
}
