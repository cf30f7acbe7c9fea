import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "@herald/provision";
import type { Simulators } from "@herald/simulators";

/** A reason why connections fail, the settings that cause it, and the reported text. `others`: servers of another authority. */
export type Unreachable = {
  what: string;
  reason: string;
  words: RegExp;
  change: (others: Simulators) => Promise<Record<string, unknown>>;
};
export const unreachable: readonly Unreachable[] = [
  {
    what: "another authority than the provider's",
    reason: "certificate-untrusted",
    words: /certificate/,
    change: async (others) => ({ ca: others.ca }),
  },
  {
    what: "a name that does not resolve",
    reason: "name-not-found",
    words: /nobody\.invalid/,
    change: async () => ({ endpoint: "https://nobody.invalid" }),
  },
  {
    what: "a port without a listener",
    reason: "connection-refused",
    words: /refused/i,
    change: async () => ({ endpoint: `https://127.0.0.1:${await freePort()}` }),
  },
  {
    what: "a server that speaks HTTP/1.1 alone",
    reason: "no-http2",
    words: /HTTP\/2/,
    change: async (others) => ({ endpoint: new URL(others.webpush.url).origin, ca: others.ca }),
  },
  {
    what: "a certificate of another name",
    reason: "certificate-name",
    words: /another name/,
    // Every address of 127/8 is this machine's.
    change: async (others) => ({
      endpoint: `https://127.0.0.9:${await relayTo(new URL(others.apns.url).port)}`,
      ca: others.ca,
    }),
  },
];

const relays: Server[] = [];
const relayed = new Set<Socket>();

/** Also ends their connections, which a running dispatch keeps open. */
export const closeRelays = () => {
  for (const socket of relayed) socket.destroy();
  return Promise.all(relays.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
};

/** A port on all addresses of this machine that leads to one of 127.0.0.1. */
async function relayTo(port: string): Promise<number> {
  const server = createServer((socket) => {
    relayed.add(socket.once("close", () => relayed.delete(socket)));
    const onward = connect(Number(port), "127.0.0.1");
    socket.on("error", () => onward.destroy()).pipe(onward);
    onward.on("error", () => socket.destroy()).pipe(socket);
  });
  await once(server.listen(0, "0.0.0.0"), "listening");
  relays.push(server);
  return (server.address() as AddressInfo).port;
}
