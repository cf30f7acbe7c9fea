import { createHmac, randomBytes } from "node:crypto";

export type WebhookResponse =
  /** `body`: the beginning of the response. */
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly body: string;
      readonly retryAfter?: string | undefined;
    }
  | { readonly kind: "unanswered"; readonly problem: string };

export type WebhookOutcome =
  | { readonly kind: "delivered" }
  /** The webhook wants no more messages. */
  | { readonly kind: "gone"; readonly error: string }
  | { readonly kind: "failed"; readonly error: string };

const gone = 410;

/**
 * As Standard Webhooks suggests: only 2xx is success, and 410 disables the webhook. But a proxy or a deployment may answer a single 410, so
 * it must be the answer to two attempts of a message in a row. `before`: the status of the attempt before.
 */
export const attemptOutcome = (response: WebhookResponse, before?: number): WebhookOutcome => {
  if (response.kind === "unanswered") return { kind: "failed", error: response.problem };
  const { status } = response;
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === gone && before === gone)
    return { kind: "gone", error: "it answered 410 twice: it wants no messages any more" };
  if (status >= 300 && status < 400)
    return { kind: "failed", error: `it answered ${status}: redirects are not followed, change the webhook's url` };
  return { kind: "failed", error: `it answered ${status}; a status from 200 to 299 is accepted` };
};

const minute = 60_000;
const hour = 60 * minute;

/** Delays before each attempt; the last is a little more than a day after the first, as Standard Webhooks recommends. */
const delaysMs = [0, 5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour] as const;

export const maxWebhookAttempts = delaysMs.length;

/** Spreads retries, so that a receiver that recovers does not get all of them at once. */
const jitterShare = 0.1;

/** A wrong or hostile `Retry-After` delays a webhook no longer than the schedule would. */
const maxRetryAfterMs = 10 * hour;

/** The time of the retry after `attempts` attempts, not before `retryAfterMs` has passed; undefined: no retry. `random` is in [0, 1). */
export const nextWebhookAttempt = ({
  attempts,
  now,
  retryAfterMs = 0,
  random,
}: {
  attempts: number;
  now: Date;
  retryAfterMs?: number | undefined;
  random: number;
}): Date | undefined => {
  const delay = delaysMs[attempts];
  if (delay === undefined) return undefined;
  const min = Math.max(delay, Math.min(retryAfterMs, maxRetryAfterMs));
  return new Date(now.getTime() + min + Math.floor(delay * jitterShare * random));
};

/** A webhook that fails for this long without a success is disabled. */
export const maxFailureMs = 5 * 24 * hour;

const prefix = "whsec_";

/** A new secret as Standard Webhooks writes it: 32 random bytes in base64. */
export const newWebhookSecret = (): string => prefix + randomBytes(32).toString("base64");

type Signed = { readonly id: string; readonly timestamp: number; readonly body: string };

/**
 * The `webhook-signature` of Standard Webhooks: one for each secret, the newest first. `timestamp`: time of the attempt, in
 * seconds since 1970; receivers refuse a timestamp that is minutes off.
 */
export const webhookSignature = (secrets: readonly string[], { id, timestamp, body }: Signed): string =>
  secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), "base64");
      return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
    })
    .join(" ");
