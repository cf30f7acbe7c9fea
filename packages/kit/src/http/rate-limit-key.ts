import { isIPv6 } from "node:net";

/** The eight groups of an IPv6 address in any notation. */
const groups = (address: string): string[] => {
  const [head = "", tail] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  if (tail === undefined) return left;
  const right = tail === "" ? [] : tail.split(":");
  return [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0"), ...right];
};

/**
 * The key that limits count an address under. A client with one IPv6 address has the 2^64 of its network, so limits count the network.
 * An IPv4 address mapped into IPv6 is the same client.
 */
export const rateLimitKey = (address: string): string => {
  const mapped = /^::ffff:([0-9.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const bare = address.split("%", 1)[0] ?? "";
  if (!isIPv6(bare)) return address;
  const network = groups(bare).slice(0, 4);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
};
