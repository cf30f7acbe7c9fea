import { HeraldError } from "./error.ts";
import type { HeraldEvent } from "./events.ts";
import { hmacKey } from "./hmac.ts";

/** As the runtime gives them: `Headers`, or Node's `request.headers`. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Longer ago than clocks differ: a recorded message has a true signature, too. */
const toleranceSeconds = 300;

const refuse = (why: string): HeraldError =>
  new HeraldError("signature-invalid", `the webhook is not Herald's: ${why}`);

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> => {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
};

/**
 * The event of a webhook's message, when its signature is Herald's and fresh (Standard Webhooks). `body` is what came, byte for
 * byte: one that was parsed and written again has another signature. Throws `signature-invalid`.
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
  // Two during a rotation of the secret.
  for (const signature of header("webhook-signature").split(" "))
    if (
      signature.startsWith("v1,") &&
      (await crypto.subtle.verify("HMAC", verifier, bytesOf(signature.slice(3)), signed))
    )
      return JSON.parse(text);
  throw refuse("no signature is of this secret");
};
