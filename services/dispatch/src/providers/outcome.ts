import {
  type BadTokenReason,
  type DeliveryReason,
  isObject,
  type ProviderProblemReason,
  providerProblems,
} from "@herald/contracts";
import type { TransportAnswer } from "@herald/http2-client";
import type { ConnectionProblem, Outcome } from "../domain/outcome.ts";

/** Error messages of Node and OpenSSL for failed connections; the first match counts. `words` replaces an unreadable message. */
const causes: readonly { says: RegExp; reason: ProviderProblemReason; words?: string }[] = [
  // First, because what follows may be the reason of the proxy.
  { says: /the proxy (refuses|asks)/, reason: "proxy-refused" },
  { says: /the proxy gives no connection/, reason: "proxy-failed" },
  { says: /the proxy/, reason: "proxy-unreachable" },
  { says: /ENOTFOUND|EAI_/, reason: "name-not-found" },
  { says: /ECONNREFUSED/, reason: "connection-refused" },
  { says: /EHOSTUNREACH|ENETUNREACH|connect ETIMEDOUT|no (HTTP\/2 )?connection within/, reason: "connection-timeout" },
  {
    says: /does not speak HTTP\/2|NO_APPLICATION_PROTOCOL/,
    reason: "no-http2",
    words: "the server does not speak HTTP/2",
  },
  { says: /does not match certificate's altnames/, reason: "certificate-name" },
  { says: /certificate (has expired|is not yet valid)/, reason: "certificate-expired" },
  // With a TLS alert, the server refuses Herald's certificate.
  { says: /ERR_SSL_|EPROTO|before secure TLS connection was established/, reason: "tls-refused" },
  { says: /certificate|issuer/, reason: "certificate-untrusted" },
];

/** Long enough for a certificate's names, and short enough for a stored record. */
const maxWords = 200;

/** Derives why a connection failed from a transport's reason. Undefined for a reason that does not concern the connection. */
export const connectionProblem = (reason: string, origin: string): ConnectionProblem | undefined => {
  const cause = causes.find(({ says }) => says.test(reason));
  if (!cause) return undefined;
  const { host } = new URL(origin);
  const words = cause.words ?? shown(reason, maxWords);
  return { reason: cause.reason, host, detail: `cannot reach ${host}: ${words}. ${providerProblems[cause.reason]}` };
};

export type { Outcome } from "../domain/outcome.ts";

/** A complete response of a provider, with any content. */
export type ProviderAnswer = Extract<TransportAnswer, { kind: "answered" }>;

/** Accepted without the provider's message id, which Herald needs only from some providers. */
export const acceptedOutcome: Outcome = Object.freeze({ kind: "accepted" });

/** Herald refused the push itself, without a request to the provider, so this says nothing about the credential. */
export const notSent = (reason: DeliveryReason, providerReason: string): Outcome => ({
  kind: "rejected",
  reason,
  providerReason,
  notSent: true,
});

/** Herald refused the push because of the device's token, to which nothing can ever be sent. */
export const neverSendable = (reason: BadTokenReason, providerReason: string): Outcome => ({
  kind: "rejected",
  reason,
  providerReason,
  notSent: true,
  badToken: true,
});

/** The outcome of a push whose `bytes` no provider takes. */
export const tooLarge = (bytes: number, maxBytes: number): Outcome =>
  notSent("payload-too-large", `${bytes} bytes, ${maxBytes} fit`);

const maxReasonLength = 120;

/** Whether an answer is a web page: made for a person by a proxy, a filter or a captive portal. */
export const isWebPage = ({ headers, body }: ProviderAnswer): boolean =>
  /^\s*(text\/html|application\/xhtml)/i.test(headers["content-type"] ?? "") ||
  /^\s*<(!doctype\s+html|html)\b/i.test(body);

/**
 * An answer without the provider's own form: something between dispatch and the provider gave it, so the push is sent again later.
 * `origin`: of the provider.
 */
export const notTheProvider = (answer: ProviderAnswer, origin: string): Extract<Outcome, { kind: "deferred" }> => {
  const reason = "not-the-provider";
  const { host } = new URL(origin);
  const what = `HTTP ${answer.status}${isWebPage(answer) ? " with a web page" : ""}`;
  const detail = `${what} is no answer of ${host}. ${providerProblems[reason]}`;
  return { kind: "deferred", providerReason: detail, problem: { reason, host, detail }, unprocessed: true };
};

/** A captive portal gives it, and no provider. */
const networkLogin = 511;

/** Whether a status says only that the server fails: then a body of any form, or none, is from the provider's own front end. */
export const isFailure = (status: number): boolean => status >= 500 && status !== networkLogin;

/** The outcome without a response: `deferred` if the push never reached the provider at `origin`, `unknown` if it may have. */
export const unanswered = (answer: Exclude<TransportAnswer, ProviderAnswer>, origin: string): Outcome => {
  if (answer.kind === "unknown") return { kind: "unknown", providerReason: shown(answer.reason) };
  const problem = connectionProblem(answer.reason, origin);
  return problem
    ? { kind: "deferred", unprocessed: true, providerReason: problem.detail, problem }
    : { kind: "deferred", unprocessed: true, providerReason: shown(answer.reason) };
};

/** The provider refused the credential for this device. Only the device is affected, because apps choose tokens and environments freely. */
export const tokenMismatch = (
  reason: Extract<
    DeliveryReason,
    "app-not-configured" | "push-type-refused" | "topic-mismatch" | "environment-mismatch" | "token-kind-mismatch"
  >,
  providerReason: string,
): Outcome => ({ kind: "rejected", reason, providerReason, tokenMismatch: true });

/** The outcome of a response from its status alone. In doubt the push is sent again, except after 4xx. */
export function outcomeOfStatus(status: number, providerReason: string, retryAfterMs?: number): Outcome {
  if (status === 401 || status === 403) return { kind: "misconfigured", providerReason };
  if (status === 413) return { kind: "rejected", reason: "payload-too-large", providerReason };
  if (status === 429) return { kind: "deferred", retryAfterMs, limit: "sender", unprocessed: true, providerReason };
  // 407: of a proxy.
  const later = status === 407 || status === 408 || status === 421 || status === 425;
  if (status >= 400 && status < 500 && !later) return { kind: "rejected", reason: "provider-rejected", providerReason };
  // 3xx: a redirect by a proxy, which says nothing about the message and is not followed.
  if (status >= 300 && status < 600)
    return { kind: "deferred", retryAfterMs, unprocessed: isUnprocessed(status), providerReason };
  return { kind: "unknown", providerReason };
}

/**
 * Whether a status says that the server did not process the request: too many requests, or unavailable (RFC 6585, 4; RFC 9110, 15.6.4).
 */
export const isUnprocessed = (status: number): true | undefined =>
  status === 429 || status === 503 ? true : undefined;

/** The provider's error code if it is well-formed, otherwise the HTTP status. Malformed codes are not stored. */
export const wordOr = (word: unknown, status: number): string => (isWord(word) ? word : `HTTP ${status}`);

export const isWord = (word: unknown): word is string =>
  typeof word === "string" && /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(word);

/** Shortens a reason and removes unprintable characters, so that it can be stored and shown. */
export const shown = (reason: string, max = maxReasonLength): string =>
  reason.replace(/[^\x20-\x7e]/g, "?").slice(0, max);

/** Parses a body as a JSON object; `{}` for any other body. */
export function parseObject(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
