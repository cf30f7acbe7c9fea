import type { IncomingMessage } from "node:http";
import { isIP, isIPv6 } from "node:net";

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
