import type { TransportRequest } from "./transport.ts";

const pathPattern = /^\/[\x21-\x7e]*$/;
const headerNamePattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const headerValuePattern = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;
const connectionHeaders = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "host",
]);

const namesRemembered = 64; // a provider has about eight

/**
 * Makes a check that throws a TypeError for what HTTP/2 cannot carry or an attacker could use to add a header.
 * Most values are those of the request before, so the last good one of each name is remembered.
 */
export function createRequestCheck(): (request: TransportRequest) => void {
  const good = new Map<string, string>();
  return ({ path, headers }) => {
    if (!pathPattern.test(path)) throw new TypeError("the path must be visible ASCII and begin with a slash");
    for (const name in headers) {
      const value = headers[name] ?? "";
      const before = good.get(name);
      if (before === value) continue;
      if (before === undefined) assertName(name);
      if (!headerValuePattern.test(value)) throw new TypeError(`the value of the header ${name} is not visible ASCII`);
      if (before !== undefined || good.size < namesRemembered) good.set(name, value);
    }
  };
}

function assertName(name: string): void {
  if (!headerNamePattern.test(name))
    throw new TypeError(`the header name ${JSON.stringify(name)} is not a lower-case token`);
  if (connectionHeaders.has(name)) throw new TypeError(`the header ${name} has no place in HTTP/2`);
}
