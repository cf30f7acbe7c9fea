import type { IncomingHttpHeaders } from "node:http";

/** RFC 8030, 7.2: services must accept at least 4,096 bytes, and none accepts more. */
export const maxWebPushBody = 4096;

/** A push service may keep a message for less time than the TTL. The large ones limit it to 28 days. */
const maxTtl = 2_419_200;

const urgencies = ["very-low", "low", "normal", "high"];

/** `reason`: Apple's word, where only Apple checks so strictly. */
const refuse = (status: number, problem: string, reason?: string) => ({ status, problem, reason });

/** The error in a push's headers or size (RFC 8030, 5); undefined if there is none. */
export function checkRequest(headers: IncomingHttpHeaders, size: number): ReturnType<typeof refuse> | undefined {
  const { ttl, urgency, topic } = headers;
  if (ttl === undefined) return refuse(400, "ttl: missing");
  if (!/^\d{1,10}$/.test(String(ttl))) return refuse(400, "ttl: not a number of seconds");
  if (urgency !== undefined && !urgencies.includes(String(urgency)))
    return refuse(400, `urgency: not one of ${urgencies.join(", ")}`);
  // Apple decodes it. A last group of one character would be six bits, and it ignores the bits that a last byte does not need.
  if (topic !== undefined && (!/^[\w-]{1,32}$/.test(String(topic)) || String(topic).length % 4 === 1))
    return refuse(
      400,
      "topic: not at most 32 characters of base64url, or of a length that no base64url has",
      "BadWebPushTopic",
    );
  if (size > maxWebPushBody) return refuse(413, `body: ${size} bytes, at most ${maxWebPushBody}`);
  if (size > 0 && headers["content-encoding"] !== "aes128gcm") return refuse(415, "content-encoding: not aes128gcm");
  return undefined;
}

/** How long the service keeps the message, in seconds. */
export const keptFor = (headers: IncomingHttpHeaders): number => Math.min(Number(headers.ttl), maxTtl);
