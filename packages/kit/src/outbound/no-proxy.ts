import { BlockList, isIP } from "node:net";

/** Whether a host and a port are reached without the proxy. The host is a name in lower case, or an address without brackets. */
export type IsDirect = (host: string, port: number) => boolean;

const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** The programs of one machine and of a test, which no proxy elsewhere could reach. */
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** One entry, without the brackets of an IPv6 address, and its port. */
const parseEntry = (entry: string): { readonly host: string; readonly port: number | undefined } => {
  const [, bracketed, rest = ""] = /^\[([^\]]*)\](.*)$/.exec(entry) ?? [];
  if (bracketed === undefined && isIP(entry) === 6) return { host: entry, port: undefined };
  const [, host = "", port] = /^(.*?)(?::(\d+))?$/.exec(bracketed === undefined ? entry : rest) ?? [];
  return { host: bracketed ?? host, port: port === undefined ? undefined : Number(port) };
};

const matcherOf = (entry: string): IsDirect => {
  const { host: pattern, port } = parseEntry(entry);
  const onPort = (at: number) => port === undefined || port === at;
  const [network = "", prefix] = pattern.split("/");
  if (isIP(network) !== 0) {
    const list = new BlockList();
    const bits = prefix === undefined ? undefined : Number(prefix || Number.NaN);
    if (bits === undefined) list.addAddress(network, familyOf(network));
    else if (Number.isInteger(bits) && bits >= 0 && bits <= (isIP(network) === 6 ? 128 : 32))
      list.addSubnet(network, bits, familyOf(network));
    return (host, at) => onPort(at) && isIP(host) !== 0 && list.check(host, familyOf(host));
  }
  const name = pattern.replace(/^\*?\./, "");
  return (host, at) => onPort(at) && (host === name || (name !== "" && host.endsWith(`.${name}`)));
};

/**
 * Reads `NO_PROXY` as curl and Go do: entries separated by commas or blanks. A name, with or without a dot before it, also means what is
 * below it; an address or a network (CIDR) means hosts that are written as addresses, because names are not resolved for this. Each may
 * have a port. `*` means everything. This machine (`localhost` and its addresses) is always reached without the proxy.
 */
export const parseNoProxy = (list: string): IsDirect => {
  const entries = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  const matchers = entries.includes("*") ? [() => true] : entries.map(matcherOf);
  const isLoopback = (host: string) =>
    host === "localhost" || host.endsWith(".localhost") || (isIP(host) !== 0 && loopback.check(host, familyOf(host)));
  return (host, port) => isLoopback(host) || matchers.some((matches) => matches(host, port));
};
