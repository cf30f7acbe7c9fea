import { type DeliveryReason, isObject } from "@herald/contracts";
import type { TransportAnswer } from "@herald/http2-client";
import type { Outcome } from "../domain/outcome.ts";
import { connectionProblem } from "./connection-problem.ts";

export type { Outcome } from "../domain/outcome.ts";

/** An answer of a provider, whole, with whatever it holds. */
export type Answered = Extract<TransportAnswer, { kind: "answered" }>;

/** Without a word of its own: most providers give the message no id that Herald needs. */
export const accepted: Outcome = Object.freeze({ kind: "accepted" });

const maxReasonLength = 120;

/** What never reached the provider at `origin` waits; what may have reached it may be repeated. */
export const unanswered = (answer: Exclude<TransportAnswer, Answered>, origin: string): Outcome => {
  if (answer.kind === "unknown") return { kind: "unknown", providerReason: shown(answer.reason) };
  const problem = connectionProblem(answer.reason, origin);
  return problem
    ? { kind: "deferred", providerReason: problem.detail, problem }
    : { kind: "deferred", providerReason: shown(answer.reason) };
};

/** The provider did not take the credential for this device: that is the device's, whose token and environment are anybody's to choose. */
export const tokenMismatch = (
  reason: Extract<DeliveryReason, "topic-mismatch" | "environment-mismatch" | "token-kind-mismatch">,
  providerReason: string,
): Outcome => ({ kind: "rejected", reason, providerReason, tokenMismatch: true });

/** What an answer means when only its status can be relied on. In doubt the push is sent again, except for 4xx. */
export function outcomeOfStatus(status: number, providerReason: string, retryAfterMs?: number): Outcome {
  if (status === 401 || status === 403) return { kind: "misconfigured", providerReason };
  if (status === 413) return { kind: "rejected", reason: "payload-too-large", providerReason };
  if (status === 429) return { kind: "deferred", retryAfterMs, limit: "sender", providerReason };
  const later = status === 408 || status === 421 || status === 425;
  if (status >= 400 && status < 500 && !later) return { kind: "rejected", reason: "provider-rejected", providerReason };
  // 3xx: a proxy that wants us elsewhere. Not followed, and no word about the message.
  if (status >= 300 && status < 600) return { kind: "deferred", retryAfterMs, providerReason };
  return { kind: "unknown", providerReason };
}

/** The provider's own word if it is one, else its status: what a mangled answer says is not worth keeping. */
export const wordOr = (word: unknown, status: number): string =>
  typeof word === "string" && /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(word) ? word : `HTTP ${status}`;

/** A reason from further away, fit for a record that people read. */
export const shown = (reason: string): string => reason.replace(/[^\x20-\x7e]/g, "?").slice(0, maxReasonLength);

/** An object from a body that may be anything. */
export function parseObject(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
