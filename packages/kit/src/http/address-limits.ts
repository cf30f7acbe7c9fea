import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, isIPv6, type Socket } from "node:net";
import { createShares } from "../fair-gate.ts";
import { HeraldError } from "../herald-error.ts";

/** Some proxies append the port: `203.0.113.9:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::[0-9]{1,5})?$/i;

/** The address in one entry of `X-Forwarded-For`; undefined if it has none. */
const addressIn = (entry: string): string | undefined => {
  const [, v6, v4] = withPort.exec(entry) ?? [];
  const address = v6 ?? v4 ?? entry;
  return isIP(address) === 0 ? undefined : address;
};

/** The entry that the outermost proxy appended, or the first one if there are fewer entries. */
const entryOf = (forwarded: string, proxies: number): string => {
  let end = forwarded.length;
  for (let hop = 1; ; hop++) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(",", end - 1);
    if (hop === proxies || comma < 0) return forwarded.slice(comma + 1, end).trim();
    end = comma;
  }
};

/**
 * The client's address for limits. Each trusted proxy appends its peer to `X-Forwarded-For`, so the outermost trusted proxy appended the
 * client's entry; a client can forge all earlier entries. Falls back to the connection's address.
 */
export const clientAddress = (request: IncomingMessage, proxies: number): string => {
  const forwarded = proxies === 0 ? undefined : request.headers["x-forwarded-for"];
  const forwardedAddress = forwarded === undefined ? undefined : addressIn(entryOf(String(forwarded), proxies));
  return rateLimitKey(forwardedAddress ?? request.socket.remoteAddress ?? "");
};

/** The eight groups of an IPv6 address in any notation. */
const groups = (address: string): string[] => {
  const [head = "", tail] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  if (tail === undefined) return left;
  const right = tail === "" ? [] : tail.split(":");
  return [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0"), ...right];
};

/**
 * The key under which limits count an address. A client with one IPv6 address can use all 2^64 of its network, so limits count the network.
 * An IPv4 address mapped into IPv6 counts as IPv4.
 */
export const rateLimitKey = (address: string): string => {
  const mapped = /^::ffff:([0-9.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const bare = address.split("%", 1)[0] ?? "";
  if (!isIPv6(bare)) return address;
  const network = groups(bare).slice(0, 4);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
};

/** Without `maxPerAddress` one address may use all connections, because behind a proxy all connections come from its address. */
export type ConnectionLimit = { readonly max: number; readonly maxPerAddress?: number | undefined };

type Connection = { readonly address: string; requests: number };

/** A place or a reservation is free as soon as a request ends. */
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
      return new HeraldError("overloaded", "connection: connection limit reached; try again later", {
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

/** Reserves memory for a request. Throws overloaded or rate-limited. */
export type ReserveMemory = (bytes: number) => void;

/** Closing the connection avoids reading the rest of the refused request. */
const closing = { connection: "close" };

export type MemoryLimit = {
  /** Bytes that all requests have reserved. */
  used(): number;
  /** Returns the function that reserves memory for this request. The memory is released when its response or its connection closes. */
  forRequest(request: IncomingMessage, response: ServerResponse, address: string): ReserveMemory;
};

/**
 * Limits the memory of all requests together, and of each client address, for bodies that arrive and responses that are not read yet. The
 * last of it is for addresses that have none; see `createShares`.
 */
export const createMemoryLimit = ({
  maxBytes,
  maxPerAddress,
}: {
  maxBytes: number;
  maxPerAddress: number;
}): MemoryLimit => {
  const shares = createShares(maxBytes);
  return {
    used: () => maxBytes - shares.free(),
    forRequest: (request: IncomingMessage, response: ServerResponse, address: string) => {
      const { socket } = request;
      let own = 0;
      let closed = false;
      const release = () => {
        closed = true;
        response.off("close", release);
        socket.off("close", release);
        shares.give(address, own);
        own = 0;
      };
      response.once("close", release);
      // A response that waits behind another on its connection gets no event when the connection closes.
      socket.once("close", release);
      return (bytes: number) => {
        // A reservation after the close would never be released.
        if (closed) throw new HeraldError("malformed-request", "connection: was closed before the answer");
        if (shares.of(address) + bytes > maxPerAddress)
          throw new HeraldError(
            "rate-limited",
            `connection: requests of one address may have ${maxPerAddress} bytes in progress; wait for the answers to earlier ones`,
            { retryAfterSeconds, headers: closing },
          );
        if (bytes > shares.free() || !shares.has(address, bytes))
          throw new HeraldError("overloaded", "connection: out of memory for requests; try again later", {
            retryAfterSeconds,
            headers: closing,
          });
        own += bytes;
        shares.take(address, bytes);
      };
    },
  };
};
