import type { LookupFunction, Socket } from "node:net";
import { neverPublicName } from "@herald/contracts";
import { parseNoProxy } from "./no-proxy.ts";
import { openTunnel, type ProxyAccess, ProxyError } from "./proxy-tunnel.ts";
import { notPublicText } from "./public-endpoint.ts";
import { socketErrorText } from "./socket-error-text.ts";

/** Opens a connection to one server through the proxy, within seconds. Rejects with the reason, in words for people. */
export type Dial = (signal?: AbortSignal) => Promise<Socket>;

/** The way of a service's https connections out of its network. */
export type OutboundProxy = {
  /**
   * How to reach the server of a URL through the proxy; undefined if NO_PROXY names it. `lookup` is a guard: it resolves the host, and the
   * proxy is asked for the address that it accepts, so a name that a stranger chose cannot lead the proxy inside. If the operator leaves
   * names to the proxy (HERALD_PROXY_RESOLVES), the guard is not asked, and the proxy's own rules must refuse inner addresses.
   */
  readonly dialTo: (url: URL, lookup?: LookupFunction) => Dial | undefined;
};

type ProxySettings = {
  readonly HTTPS_PROXY?: string | undefined;
  readonly NO_PROXY?: string | undefined;
  readonly HERALD_PROXY_RESOLVES?: boolean | undefined;
};

/** A proxy answers after one round trip to the server. Less than the time that a test push waits. */
const dialMs = 3_000;

/** Host and port of a configuration's proxy, without user and password. */
export const proxyAddressOf = ({ HTTPS_PROXY }: Pick<ProxySettings, "HTTPS_PROXY">): string | undefined =>
  HTTPS_PROXY === undefined ? undefined : new URL(HTTPS_PROXY).host;

/** The proxy of a configuration; undefined if it has none. */
export const createOutboundProxy = (settings: ProxySettings): OutboundProxy | undefined => {
  if (settings.HTTPS_PROXY === undefined) return undefined;
  const url = new URL(settings.HTTPS_PROXY);
  const access: ProxyAccess = { url, authorization: authorizationOf(url) };
  const isDirect = parseNoProxy(settings.NO_PROXY ?? "");

  const targetOf = async (host: string, lookup: LookupFunction): Promise<string> => {
    if (!settings.HERALD_PROXY_RESOLVES) return addressOf(host, lookup);
    if (neverPublicName.test(host)) throw new Error(notPublicText);
    return host;
  };

  return {
    dialTo: ({ hostname, port: ownPort }, lookup) => {
      const name = hostname.replace(/^\[|\]$/g, "");
      const port = Number(ownPort || 443);
      if (isDirect(name, port)) return undefined;
      return async (closing) => {
        const timeout = AbortSignal.timeout(dialMs);
        const signal = closing ? AbortSignal.any([timeout, closing]) : timeout;
        const host = lookup === undefined ? name : await untilAborted(targetOf(name, lookup), signal);
        return openTunnel(access, { host, port }, signal).catch((error: unknown) => {
          if (error !== timeout.reason) throw error;
          throw new ProxyError(`the proxy does not answer within ${dialMs / 1_000} s`);
        });
      };
    },
  };
};

/** Basic authentication, RFC 7617. */
const authorizationOf = ({ username, password }: URL): string | undefined =>
  username === "" && password === ""
    ? undefined
    : `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")}`;

/** The address that a guard accepts. IPv4 if there is one, because some proxies have no IPv6. */
const addressOf = (host: string, lookup: LookupFunction): Promise<string> =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error?.message === notPublicText) return reject(error);
      const addresses = typeof found === "string" ? [] : found;
      const chosen = addresses.find(({ family }) => family === 4) ?? addresses[0];
      if (error === null && chosen !== undefined) return resolve(chosen.address);
      const why = error === null ? "ENOTFOUND" : socketErrorText(error);
      reject(new Error(`${why} (Herald resolves this name itself, unless HERALD_PROXY_RESOLVES is set)`));
    });
  });

const untilAborted = async (value: Promise<string>, signal: AbortSignal): Promise<string> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(new Error(`EAI_AGAIN: no address within ${dialMs / 1_000} s`));
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([value, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
};
