import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createShares } from "../fair-gate.ts";
import { HeraldError } from "../herald-error.ts";
import { rateLimitKey } from "./client-address.ts";

/** Without `maxPerAddress` one address may use all connections, because behind a proxy all connections come from its address. */
export type ConnectionLimit = { readonly max: number; readonly maxPerAddress?: number | undefined };

type Connection = { readonly address: string; requests: number };

const retryAfterSeconds = 1;

/** Limits the connections of a server. Closes an idle connection when a new one needs its place, so only busy connections count. */
export const createConnections = (
  { max, maxPerAddress = Number.POSITIVE_INFINITY }: ConnectionLimit = { max: Number.POSITIVE_INFINITY },
) => {
  const open = new Map<Socket, Connection>();
  const shares = createShares(max);
  /** Connections between two requests, longest idle first. */
  const idle = new Set<Socket>();

  const remove = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    idle.delete(socket);
    shares.give(connection.address, 1);
  };

  const closeIdle = (fits: (socket: Socket) => boolean): boolean => {
    for (const socket of idle) {
      if (!fits(socket)) continue;
      remove(socket);
      socket.destroy();
      return true;
    }
    return false;
  };

  /** The last places are for addresses that have none, unless a proxy's has all. */
  const hasRoom = (address: string): boolean =>
    shares.free() > 0 && (maxPerAddress === Number.POSITIVE_INFINITY || shares.has(address, 1));

  const refusalFor = (address: string): HeraldError | undefined => {
    const closeOwn = () => closeIdle((socket) => open.get(socket)?.address === address);
    if (shares.of(address) >= maxPerAddress && !closeOwn())
      return new HeraldError(
        "rate-limited",
        `connection: one address may have ${maxPerAddress} at a time; use those that are open`,
        { retryAfterSeconds },
      );
    if (!hasRoom(address) && !closeOwn() && !closeIdle(() => true))
      return new HeraldError("overloaded", "connection: as many as are taken here are open; try again later", {
        retryAfterSeconds,
      });
    return undefined;
  };

  return {
    /** Accepts a connection, and closes an idle one if necessary. Returns the error if there is no room. */
    accept: (socket: Socket) => {
      const address = rateLimitKey(socket.remoteAddress ?? "");
      const refusal = refusalFor(address);
      if (refusal) return refusal;
      open.set(socket, { address, requests: 0 });
      shares.take(address, 1);
      socket.once("close", () => remove(socket));
      // Each pipelined request adds a listener.
      socket.setMaxListeners(0);
      return undefined;
    },
    /** Marks the connection busy until the response closes. False for a connection that was not accepted. */
    beginRequest: (socket: Socket, response: ServerResponse) => {
      const connection = open.get(socket);
      if (connection === undefined) return false;
      connection.requests++;
      idle.delete(socket);
      response.once("close", () => {
        connection.requests--;
        if (connection.requests === 0 && open.has(socket)) idle.add(socket);
      });
      return true;
    },
    count: () => open.size,
    sockets: () => open.keys(),
  };
};
