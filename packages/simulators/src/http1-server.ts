import { createServer } from "node:https";
import type { Identity } from "./certificates.ts";
import { keepSockets } from "./keep-sockets.ts";

const ignore = () => {};

/** A server over TLS that speaks HTTP/1.1 and nothing newer, as older push services do. What a script says of streams has no effect. */
export function createHttp1Server(identity: Identity) {
  const server = createServer({ key: identity.key, cert: identity.certificate, ALPNProtocols: ["http/1.1"] });
  server.on("clientError", (_, socket) => socket.destroy());

  return {
    server,
    /** There are no streams to begin. */
    begin: () => undefined,
    proven: ignore,
    ...keepSockets(server),
  };
}

export type Http1Server = ReturnType<typeof createHttp1Server>;
