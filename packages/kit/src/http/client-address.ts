import type { IncomingMessage } from "node:http";

/**
 * Where a request comes from: the last address that none of so many trusted proxies has given, each of which adds to
 * `X-Forwarded-For` whom it heard from. Whatever stands before that anyone may have written.
 */
export const clientAddress = (request: IncomingMessage, proxies: number): string => {
  const last = request.socket.remoteAddress ?? "";
  const forwarded = proxies === 0 ? undefined : request.headers["x-forwarded-for"];
  if (forwarded === undefined || forwarded.length === 0) return last;
  const hops = [last, ...String(forwarded).split(",").reverse()];
  return (hops[Math.min(proxies, hops.length - 1)] ?? last).trim();
};
