import { hash } from "node:crypto";
import { z } from "zod";
import { withoutPadding } from "./platforms.ts";

/** The public half of a VAPID key (RFC 8292), as `applicationServerKey` in browsers. Its first byte is always 4. */
export const VapidPublicKey = z
  .string()
  .regex(/^B[A-Za-z0-9_-]{86}=?$/, "must be a VAPID public key: an uncompressed P-256 point, 65 bytes as base64url")
  .overwrite(withoutPadding)
  .meta({
    id: "VapidPublicKey",
    examples: ["BPCaFr0C6sVCfbf6zWAh-X7CvIzLpkMnFKFmpYqdJHNlnGxfOZL5OtqGWZKPQG92fgJUmPwR_8CQf0rDGxwTE3s"],
  });

const domain = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]([a-z0-9-]*[a-z0-9])$/i;
/**
 * Names below these are never public: RFC 2606, 6761, 6762, 7686, 8375 and 9476, those that ICANN never gives away, and routers' own. Not
 * `example` and `test`, because documents and tests have them.
 */
export const neverPublicName =
  /\.(alt|arpa|corp|home|internal|intranet|invalid|lan|local|localdomain|localhost|onion|private)$/i;

/** Whom push services may contact about the pushes of a VAPID key: the host of the address or URL. */
const contactHost = (subject: string): string | undefined => {
  if (subject.startsWith("mailto:")) return /^mailto:[A-Za-z0-9.!#$&'*+/=^_`{|}~-]+@(.+)$/.exec(subject)?.[1];
  const url = /^https:\/\/[\x21-\x7e]+$/.test(subject) && !/[<>[\]]/.test(subject) ? URL.parse(subject) : null;
  return url === null || url.username !== "" || url.password !== "" ? undefined : url.hostname;
};

/**
 * The `sub` of a VAPID token (RFC 8292, 2.1): one address or URL. Apple answers BadJwtToken to every push with one that cannot be a contact,
 * other services do not look at it.
 */
export const VapidSubject = z
  .string()
  // Limited because every push contains it in a header.
  .max(320, "must be at most 320 characters")
  .refine((subject) => {
    const host = contactHost(subject);
    return host !== undefined && domain.test(host) && !neverPublicName.test(host) && !/\.(example|test)$/i.test(host);
  }, "must be one address such as mailto:push@example.com, or one https: URL, of whom to contact: without spaces and brackets, and with a host of the Internet, not one such as `localhost` or one that ends with `.local` or `.invalid`, which Apple refuses")
  .meta({
    pattern: "^(mailto:[^\\s<>,:]+@[^\\s<>,:]+\\.[^\\s<>,:]+|https:\\/\\/[^\\s<>]+\\.[^\\s<>]+)$",
    examples: ["mailto:push@example.com"],
  });

/** The id of a key: the first 16 hex digits of the SHA-256 of its public half. */
export const VapidKeyId = z
  .string()
  .regex(/^[0-9a-f]{16}$/, "must be a key's id: 16 hexadecimal digits")
  .meta({ id: "VapidKeyId", examples: ["3f9a1c0b7d42e685"] });

export const vapidKeyId = (publicKey: string): string =>
  hash("sha256", Buffer.from(publicKey, "base64url"), "hex").slice(0, 16);

/**
 * A key's state in its rotation: `next` is published, browsers subscribe with `current`, and `earlier` keys sign for their existing
 * subscriptions.
 */
export const VapidKeyStatus = z.enum(["next", "current", "earlier"]).meta({ id: "VapidKeyStatus" });
export type VapidKeyStatus = z.infer<typeof VapidKeyStatus>;
