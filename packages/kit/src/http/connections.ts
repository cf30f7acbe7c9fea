import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { HeraldError } from "../herald-error.ts";
import { limitKey } from "./limit-key.ts";

/** How many connections are taken. Without `perAddress` one address may have all: behind a proxy all come from there. */
export type ConnectionLimit = { readonly most: number; readonly perAddress?: number | undefined };

export type Connections = {
  /** Takes a connection, closing an idle one where it must. The error says why it is not taken. */
  readonly add: (socket: Socket) => HeraldError | undefined;
  /** A request begins on it, which ends with its response. False when the connection was not taken. */
  readonly begin: (socket: Socket, response: ServerResponse) => boolean;
  readonly count: () => number;
  readonly sockets: () => Iterable<Socket>;
};

type Connection = { readonly address: string; requests: number };

const retryAfterSeconds = 1;

/**
 * Keeps count of a server's connections within a limit. A client may keep a connection for its next request, and loses it first when
 * others need the room: what then is refused has that many requests under way.
 */
export const createConnections = (
  { most, perAddress = Number.POSITIVE_INFINITY }: ConnectionLimit = { most: Number.POSITIVE_INFINITY },
): Connections => {
  const open = new Map<Socket, Connection>();
  const byAddress = new Map<string, number>();
  /** Between two requests, the longest first. */
  const idle = new Set<Socket>();

  const remove = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    idle.delete(socket);
    const left = (byAddress.get(connection.address) ?? 1) - 1;
    if (left > 0) byAddress.set(connection.address, left);
    else byAddress.delete(connection.address);
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

  const refusalOf = (address: string): HeraldError | undefined => {
    if ((byAddress.get(address) ?? 0) >= perAddress && !closeIdle((socket) => open.get(socket)?.address === address))
      return new HeraldError(
        "rate-limited",
        `connection: one address may have ${perAddress} at a time; use those that are open`,
        { retryAfterSeconds },
      );
    if (open.size >= most && !closeIdle(() => true))
      return new HeraldError("overloaded", "connection: as many as are taken here are open; try again later", {
        retryAfterSeconds,
      });
    return undefined;
  };

  return {
    add: (socket) => {
      const address = limitKey(socket.remoteAddress ?? "");
      const refusal = refusalOf(address);
      if (refusal) return refusal;
      open.set(socket, { address, requests: 0 });
      byAddress.set(address, (byAddress.get(address) ?? 0) + 1);
      socket.once("close", () => remove(socket));
      // As many requests as are pipelined listen for its end.
      socket.setMaxListeners(0);
      return undefined;
    },
    begin: (socket, response) => {
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
