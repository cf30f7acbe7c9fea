import { isIP, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import type { TransportOptions } from "./transport.ts";

/** The last session that a peer offered to resume. The next connection uses it and needs no signature and no certificate. */
export type TlsTickets = { last: Buffer | undefined };

/**
 * Starts a TLS connection that offers `protocols` in ALPN, on `tunnel` or directly. Tickets belong to one origin and one credential.
 */
export function connectTls(
  options: TransportOptions,
  tickets: TlsTickets,
  tunnel: Socket | undefined,
  protocols = ["h2"],
): TLSSocket {
  const { hostname, port } = new URL(options.origin);
  const address = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({
    host: address,
    port: Number(port || 443),
    ...(tunnel && { socket: tunnel }),
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
    // TLS does not verify the peer of a resumed session again, so store sessions of verified peers only.
    if (socket.authorized) tickets.last = session;
  });
  socket.once("close", () => {
    // A peer may reject its own ticket, so the next connection starts without one.
    if (!secured) tickets.last = undefined;
  });
  return socket;
}
