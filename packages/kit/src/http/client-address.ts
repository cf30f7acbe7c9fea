import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { rateLimitKey } from "./rate-limit-key.ts";

/** Some proxies write the port too: `203.0.113.9:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::[0-9]{1,5})?$/i;

/** The address in one entry of `X-Forwarded-For`, undefined where there is none. */
const addressIn = (entry: string): string | undefined => {
  const [, v6, v4] = withPort.exec(entry) ?? [];
  const address = v6 ?? v4 ?? entry;
  return isIP(address) === 0 ? undefined : address;
};

/** The entry that the outermost proxy appended, or the first one where there are fewer entries. */
const entryOf = (forwarded: string, proxies: number): string => {
  let end = forwarded.length;
  for (let hop = 1; ; hop++) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(",", end - 1);
    if (hop === proxies || comma < 0) return forwarded.slice(comma + 1, end).trim();
    end = comma;
  }
};

/**
 * The client's address as limits count it. Each trusted proxy appends its peer to `X-Forwarded-For`, so the client is the entry that the
 * outermost of them appended; a client can forge everything before it. Falls back to the connection's address.
 */
export const clientAddress = (request: IncomingMessage, proxies: number): string => {
  const forwarded = proxies === 0 ? undefined : request.headers["x-forwarded-for"];
  const forwardedAddress = forwarded === undefined ? undefined : addressIn(entryOf(String(forwarded), proxies));
  return rateLimitKey(forwardedAddress ?? request.socket.remoteAddress ?? "");
};
