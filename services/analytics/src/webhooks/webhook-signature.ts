import { createHmac, randomBytes } from "node:crypto";

const prefix = "whsec_";

/** A new secret as Standard Webhooks writes it: 32 random bytes in base64. */
export const newWebhookSecret = (): string => prefix + randomBytes(32).toString("base64");

type Signed = { readonly id: string; readonly timestamp: number; readonly body: string };

/**
 * The `webhook-signature` of Standard Webhooks: one for each secret, the newest first. `timestamp` is the attempt's, in
 * seconds since 1970; receivers refuse one that is minutes off.
 */
export const webhookSignature = (secrets: readonly string[], { id, timestamp, body }: Signed): string =>
  secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), "base64");
      return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
    })
    .join(" ");
