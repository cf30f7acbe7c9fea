import type { IncomingHttpHeaders } from "node:http";

const loopback = ["127.0.0.1", "localhost", "[::1]"];

/**
 * For servers on this machine that act without a credential: why a request is refused (421), undefined if it is not. A page of another
 * site can let its name resolve to 127.0.0.1 (DNS rebinding); its requests name it in `Host`. Without that it can send what needs no
 * preflight, and is named in `Origin`. `names`: further hosts that clients may use.
 */
export const foreignSite = (
  { host, origin }: Pick<IncomingHttpHeaders, "host" | "origin">,
  names: readonly string[] = [],
): string | undefined => {
  const accepted = [...loopback, ...names];
  const isOwn = (url: string) => accepted.includes(URL.parse(url)?.hostname ?? "");
  const must = `must be ${accepted.join(" or ")}, with any port`;
  if (!isOwn(`http://${host}`)) return `Host: ${must}`;
  return origin === undefined || isOwn(origin) ? undefined : `Origin: ${must}, or absent`;
};
