import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import type { TransportOptions } from "./transport.ts";

/** The last session that a peer offered to resume, so that the next connection costs no signature and no certificate. */
export type TlsTickets = { last: Buffer | undefined };

/** Begins a connection that speaks one of the protocols or nothing. Tickets belong to one origin and one credential. */
export function connectTls(options: TransportOptions, tickets: TlsTickets, protocols = ["h2"]): TLSSocket {
  const { hostname, port } = new URL(options.origin);
  const address = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({
    host: address,
    port: Number(port || 443),
    ...(isIP(address) ? {} : { servername: address }),
    ALPNProtocols: protocols,
    ca: options.ca,
    cert: options.certificate,
    key: options.privateKey,
    lookup: options.lookup,
    session: tickets.last,
  });
  socket.setNoDelay(true);
  let secured = false;
  socket.once("secureConnect", () => {
    secured = true;
  });
  socket.on("session", (session) => {
    // A resumed session is not verified again, so it must come from a peer that was.
    if (socket.authorized) tickets.last = session;
  });
  socket.once("close", () => {
    // A peer may dislike its own ticket: the next connection starts without one.
    if (!secured) tickets.last = undefined;
  });
  return socket;
}
