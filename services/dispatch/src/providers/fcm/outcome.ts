import { retryAfterMs } from "@herald/kit";
import {
  type Answered,
  accepted,
  type Outcome,
  outcomeOfStatus,
  parseObject,
  tokenMismatch,
  wordOr,
} from "../outcome.ts";

type Verdict =
  | "unregistered"
  | "misconfigured"
  | "another-app"
  | "another-kind"
  | "no-such-target"
  | "deferred"
  | "look-at-the-argument";

/**
 * FCM's error codes with their statuses (the FcmError detail), and Google's own where no FCM code comes with them. Misconfigured is
 * only what is the same for every device: tokens and their kind are anybody's to choose.
 */
export const fcmErrors = {
  "400 INVALID_ARGUMENT": "look-at-the-argument",
  "401 THIRD_PARTY_AUTH_ERROR": "another-kind", // a token of an iOS or web app whose own key Firebase lacks
  "401 UNAUTHENTICATED": "misconfigured",
  "401 ACCESS_TOKEN_EXPIRED": "misconfigured",
  "403 SENDER_ID_MISMATCH": "another-app", // or the wrong project's key, which looks just the same
  "403 PERMISSION_DENIED": "misconfigured",
  "404 UNREGISTERED": "unregistered",
  "404 NOT_FOUND": "no-such-target", // a dead token has UNREGISTERED beside it, so this retires no device
  "409 ABORTED": "deferred",
  "429 QUOTA_EXCEEDED": "deferred",
  "429 RESOURCE_EXHAUSTED": "deferred",
  "499 CANCELLED": "deferred",
  "500 INTERNAL": "deferred",
  "503 UNAVAILABLE": "deferred",
  "504 DEADLINE_EXCEEDED": "deferred",
} as const satisfies Record<string, Verdict>;

const verdicts = new Map<string, Verdict>(Object.entries(fcmErrors));

/** "Wait 60 seconds" is what Google asks for where a 429 has no Retry-After: quotas are counted by the minute. */
const quotaPauseMs = 60_000;

/** Classifies any answer, also one that Google would never give. `now` is when it came. */
export function fcmOutcome({ status, headers, body }: Answered, now: Date): Outcome {
  if (status === 200) return acceptedAs(parseObject(body).name);
  const error = errorOf(body);
  const providerReason = wordOr(error.word, status);
  const pause = retryAfterMs(headers["retry-after"], now) ?? (status === 429 ? quotaPauseMs : undefined);
  switch (verdicts.get(`${status} ${providerReason}`)) {
    case "unregistered":
      return { kind: "unregistered", providerReason };
    case "misconfigured":
      return { kind: "misconfigured", providerReason };
    case "another-app":
      return tokenMismatch("topic-mismatch", providerReason);
    case "another-kind":
      return tokenMismatch("token-kind-mismatch", providerReason);
    case "no-such-target":
      return { kind: "rejected", reason: "token-invalid", providerReason };
    case "deferred":
      return {
        kind: "deferred",
        retryAfterMs: pause,
        limit: status === 429 ? limitOf(error) : undefined,
        providerReason,
      };
    case "look-at-the-argument":
      return { kind: "rejected", reason: argumentFault(error), providerReason };
    default:
      return outcomeOfStatus(status, providerReason, pause);
  }
}

/** `projects/<project>/messages/<id>`. */
const acceptedAs = (name: unknown): Outcome =>
  typeof name === "string" && /^projects\/[\x21-\x7e]{1,200}$/.test(name)
    ? { kind: "accepted", providerId: name }
    : accepted;

type FcmError = {
  /** FCM's code, else the reason that Google gives, else its canonical status. */
  readonly word: unknown;
  readonly message: string;
  readonly fields: readonly string[];
  /** Which quota was exceeded, in words. */
  readonly quotas: readonly string[];
};

function errorOf(body: string): FcmError {
  const error = objectOr(parseObject(body).error);
  const details = arrayOr(error.details).map(objectOr);
  const detail = (type: string, field: string) =>
    details.find((each) => textOr(each["@type"]).endsWith(type) && each[field] !== undefined)?.[field];
  const violations = arrayOr(detail("google.rpc.BadRequest", "fieldViolations")).map(objectOr);
  const exceeded = arrayOr(detail("google.rpc.QuotaFailure", "violations")).map(objectOr);
  // Apple's answer, or a push service's, stands beside FCM's code, and is what remains where that is left out.
  const byThirdParty =
    detail("ApnsError", "reason") ?? detail("ApnsError", "statusCode") ?? detail("WebpushError", "statusCode");
  const status = byThirdParty === undefined ? error.status : "THIRD_PARTY_AUTH_ERROR";
  return {
    word: detail("FcmError", "errorCode") ?? detail("google.rpc.ErrorInfo", "reason") ?? status,
    message: [error.message, ...violations.map(({ description }) => description)].map(textOr).join("\n"),
    fields: violations.map(({ field }) => textOr(field)),
    quotas: exceeded.flatMap(({ subject, description }) => [textOr(subject), textOr(description)]),
  };
}

/** INVALID_ARGUMENT says that the request is wrong, and only its details what: the token, its size or its fields. */
function argumentFault({ message, fields }: FcmError): "token-invalid" | "payload-too-large" | "payload-invalid" {
  if (fields.some((field) => /^message\.(token|fid)$/.test(field))) return "token-invalid";
  if (/registration token is not a valid|installation id is not valid/i.test(message)) return "token-invalid";
  return /too (big|large|long)/i.test(message) ? "payload-too-large" : "payload-invalid";
}

/** FCM limits messages to one device too, with the same code: that is no reason to keep the others waiting. */
const limitOf = ({ message, quotas }: FcmError): "sender" | "device" =>
  [message, ...quotas].some((words) => /device/i.test(words)) ? "device" : "sender";

const objectOr = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
/** Not `String`: that throws for an object whose `toString` the answer chose. */
const textOr = (value: unknown): string => (typeof value === "string" ? value : "");
const arrayOr = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
