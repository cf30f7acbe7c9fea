import { HeraldError } from "./error.ts";
import type { HeraldEvent } from "./events.ts";
import { hmacKey } from "./hmac.ts";

/** `Headers`, or Node's `request.headers`. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Refuses replayed messages, whose signatures are valid too. */
const toleranceSeconds = 300;

const refuse = (why: string): HeraldError =>
  new HeraldError("signature-invalid", `the webhook's signature is invalid: ${why}`);

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> => {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
};

/**
 * Verifies a webhook's signature and timestamp (Standard Webhooks), and returns the event. `body` must be the bytes as received: parsing
 * and serialising changes them. Throws `signature-invalid`.
 */
export const verifyWebhook = async (
  headers: ReceivedHeaders,
  body: string | Uint8Array,
  secret: string,
): Promise<HeraldEvent> => {
  const key = bytesOf(secret.replace(/^whsec_/, ""));
  if (key.length === 0) throw new TypeError("secret: must be the webhook's secret, whsec_…");
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== "string") throw refuse(`it has no ${name}`);
    return value;
  };
  const timestamp = header("webhook-timestamp");
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) < toleranceSeconds))
    throw refuse("webhook-timestamp is more than five minutes off; check this machine's clock");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${header("webhook-id")}.${timestamp}.${text}`);
  const verifier = await hmacKey(key, "verify");
  // There are two while a secret is rotated.
  for (const signature of header("webhook-signature").split(" "))
    if (
      signature.startsWith("v1,") &&
      (await crypto.subtle.verify("HMAC", verifier, bytesOf(signature.slice(3)), signed))
    )
      return JSON.parse(text);
  throw refuse("no signature is of this secret");
};
