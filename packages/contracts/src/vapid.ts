import { hash } from "node:crypto";
import { z } from "zod";

/** The public half of a VAPID key (RFC 8292), as `applicationServerKey` in browsers. Its first byte is always 4. */
export const VapidPublicKey = z
  .string()
  .regex(/^B[A-Za-z0-9_-]{86}=?$/, "must be a VAPID public key: an uncompressed P-256 point, 65 bytes as base64url")
  .meta({
    id: "VapidPublicKey",
    examples: ["BPCaFr0C6sVCfbf6zWAh-X7CvIzLpkMnFKFmpYqdJHNlnGxfOZL5OtqGWZKPQG92fgJUmPwR_8CQf0rDGxwTE3s"],
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
