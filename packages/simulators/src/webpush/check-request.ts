import type { IncomingHttpHeaders } from "node:http";

/** RFC 8030, 7.2: services must take at least 4,096 bytes, and none takes more. */
export const maxBody = 4096;

/** A push service may keep a message for less than it is asked to; 28 days is what the big ones do. */
const maxTtl = 2_419_200;

const urgencies = ["very-low", "low", "normal", "high"];

/** What is wrong with a push's headers and size (RFC 8030, 5), or undefined. */
export function checkRequest(
  headers: IncomingHttpHeaders,
  size: number,
): { readonly status: number; readonly problem: string } | undefined {
  const { ttl, urgency, topic } = headers;
  if (ttl === undefined) return { status: 400, problem: "ttl: missing" };
  if (!/^\d{1,10}$/.test(String(ttl))) return { status: 400, problem: "ttl: not a number of seconds" };
  if (urgency !== undefined && !urgencies.includes(String(urgency))) {
    return { status: 400, problem: `urgency: not one of ${urgencies.join(", ")}` };
  }
  if (topic !== undefined && !/^[\w-]{1,32}$/.test(String(topic))) {
    return { status: 400, problem: "topic: not at most 32 characters of base64url" };
  }
  if (size > maxBody) return { status: 413, problem: `body: ${size} bytes, at most ${maxBody}` };
  if (size > 0 && headers["content-encoding"] !== "aes128gcm") {
    return { status: 415, problem: "content-encoding: not aes128gcm" };
  }
  return undefined;
}

/** How long the service will keep the message, seconds. */
export const keptFor = (headers: IncomingHttpHeaders): number => Math.min(Number(headers.ttl), maxTtl);
