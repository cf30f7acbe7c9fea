import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { neverPublicName } from "@herald/contracts";

export type CheckedEndpoint =
  | { readonly ok: true; readonly origin: string; readonly hostname: string; readonly path: string }
  | { readonly ok: false; readonly problem: string };

/**
 * Checks that Herald may call a URL from an untrusted source: https on port 443 to a full host name, or any URL of `exemptOrigin` without a
 * user that may exist. This is all that the URL shows; {@link publicLookup} checks the host's addresses at connect.
 */
export function checkPublicEndpoint(endpoint: string, exemptOrigin?: string): CheckedEndpoint {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined) return { ok: false, problem: "the endpoint is not a URL" };
  const { origin, pathname, search, hostname } = url;
  const path = `${pathname}${search}`;
  if (url.username !== "" || url.password !== "") return { ok: false, problem: "the endpoint carries a user" };
  if (hostname.endsWith(".invalid")) return { ok: false, problem: "the endpoint's host does not exist" };
  if (origin === exemptOrigin) return { ok: true, origin, hostname, path };
  if (url.protocol !== "https:") return { ok: false, problem: "the endpoint is not https" };
  if (url.port !== "") return { ok: false, problem: "the endpoint's port is not 443" };
  if (isIP(hostname) !== 0 || hostname.startsWith("["))
    return { ok: false, problem: "the endpoint's host is an address" };
  if (!/^(?!-)[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(hostname))
    return { ok: false, problem: "the endpoint's host is not a full name" };
  if (neverPublicName.test(hostname))
    return { ok: false, problem: "the endpoint's host has a name that is never public" };
  return { ok: true, origin, hostname, path };
}

/**
 * Why no push can be sent to a subscription's endpoint; undefined: nothing in the endpoint forbids it. `settings`: the project's for Web Push.
 * Without them nothing tells yet where its own push service is.
 */
export const endpointProblem = (
  endpoint: string,
  settings: { readonly pushOrigin?: string | undefined } | undefined,
): string | undefined => {
  const { protocol, origin } = URL.parse(endpoint) ?? {};
  const own = settings === undefined && protocol === "https:" ? origin : settings?.pushOrigin;
  const checked = checkPublicEndpoint(endpoint, own);
  return checked.ok
    ? undefined
    : `no push can be sent there: ${checked.problem}; a browser's endpoint is an https URL on port 443 of a public host name`;
};

const privateV4 = blockList("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
]);
/** Only 2000::/3 is public. Within it, these networks are for documentation or special purposes, or contain an IPv4 address. */
const publicV6 = blockList("ipv6", [["2000::", 3]]);
const specialV6 = blockList("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
]);

/** Whether an address is public: without a special purpose in IANA's registries. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !privateV4.check(address, "ipv4");
  return family === 6 && publicV6.check(address, "ipv6") && !specialV6.check(address, "ipv6");
}

/** The start of the reason that a transport reports when {@link publicLookup} refused an address. */
export const notPublicText = "the endpoint's host has an address that is not public";

export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A lookup for sockets that fails unless every address is public. The socket connects to the checked addresses, so a name whose addresses
 * change between check and use gains nothing.
 */
export function publicLookup(resolve: Resolve = systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, "", 0);
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address)))
        return callback(new Error(notPublicText), "", 0);
      if (options.all) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

function blockList(family: "ipv4" | "ipv6", subnets: ReadonlyArray<readonly [string, number]>): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, family);
  return list;
}
