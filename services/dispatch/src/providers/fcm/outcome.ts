import { isObject } from "@herald/contracts";
import { parseRetryAfter } from "@herald/kit";
import {
  acceptedOutcome,
  isFailure,
  isUnprocessed,
  isWord,
  notTheProvider,
  type Outcome,
  outcomeOfStatus,
  type ProviderAnswer,
  parseObject,
  shown,
  tokenMismatch,
  wordOr,
} from "../outcome.ts";

type Meaning =
  | "unregistered"
  | "misconfigured"
  | "another-app"
  | "another-kind"
  | "no-such-target"
  | "deferred"
  | "look-at-the-argument";

/**
 * FCM's error codes with their statuses (the FcmError detail), and Google's codes for responses without an FCM code. `misconfigured`
 * is only for errors that are the same for every device, because apps choose tokens and their kind freely.
 */
export const fcmErrors = {
  "400 INVALID_ARGUMENT": "look-at-the-argument",
  "401 THIRD_PARTY_AUTH_ERROR": "another-kind", // a token of an iOS or web app for which Firebase has no key
  "401 UNAUTHENTICATED": "misconfigured",
  "401 ACCESS_TOKEN_EXPIRED": "misconfigured",
  "403 SENDER_ID_MISMATCH": "another-app", // or the wrong project's key, which looks the same
  "403 PERMISSION_DENIED": "misconfigured",
  "404 UNREGISTERED": "unregistered",
  "404 NOT_FOUND": "no-such-target", // for a dead token, FCM adds UNREGISTERED, so this retires no device
  "409 ABORTED": "deferred",
  "429 QUOTA_EXCEEDED": "deferred",
  "429 RESOURCE_EXHAUSTED": "deferred",
  "499 CANCELLED": "deferred",
  "500 INTERNAL": "deferred",
  "503 UNAVAILABLE": "deferred",
  "504 DEADLINE_EXCEEDED": "deferred",
} as const satisfies Record<string, Meaning>;

const meanings = new Map<string, Meaning>(Object.entries(fcmErrors));

/** Google asks senders to wait 60 seconds after a 429 without Retry-After: quotas are counted per minute. */
const quotaPauseMs = 60_000;

/** Google's longest advice has an address to follow. */
const maxDetailLength = 300;

/** Classifies any response, even one that Google would never send. `now`: when it arrived. `origin`: of the host that was asked. */
export function fcmOutcome(answer: ProviderAnswer, now: Date, origin: string): Outcome {
  const { status, headers, body } = answer;
  const parsed = parseObject(body);
  if (status === 200 && typeof parsed.name === "string") return acceptedAs(parsed.name);
  // Every error of FCM is JSON with `error`; where it fails, Google's front end may give a page.
  const error = errorOf(parsed.error);
  const isGoogles = isWord(error.word) || (isObject(parsed.error) && parsed.error.code === status);
  if (status === 200 || !(isGoogles || isFailure(status))) return notTheProvider(answer, origin);
  const providerReason = wordOr(error.word, status);
  const pause = parseRetryAfter(headers["retry-after"], now) ?? (status === 429 ? quotaPauseMs : undefined);
  switch (meanings.get(`${status} ${providerReason}`)) {
    case "unregistered":
      return { kind: "unregistered", providerReason };
    case "misconfigured":
      return refused(providerReason, error);
    case "another-app":
      return tokenMismatch("topic-mismatch", providerReason);
    case "another-kind":
      return tokenMismatch("token-kind-mismatch", providerReason);
    case "no-such-target":
      return { kind: "rejected", reason: "token-invalid", providerReason };
    case "deferred": {
      const limit = status === 429 ? limitOf(error) : undefined;
      return { kind: "deferred", retryAfterMs: pause, limit, unprocessed: isUnprocessed(status), providerReason };
    }
    case "look-at-the-argument":
      return argumentFault(error, providerReason);
    default: {
      const outcome = outcomeOfStatus(status, providerReason, pause);
      return outcome.kind === "misconfigured" ? refused(providerReason, error) : outcome;
    }
  }
}

/** Google says in words what lacks, such as an API that is not enabled. */
const refused = (providerReason: string, { message }: FcmError): Outcome => {
  const detail = shown(message.trim(), maxDetailLength);
  return { kind: "misconfigured", providerReason, ...(detail !== "" && { detail }) };
};

/** FCM's message id has the form `projects/<project>/messages/<id>`. */
const acceptedAs = (name: string): Outcome =>
  /^projects\/[\x21-\x7e]{1,200}$/.test(name) ? { kind: "accepted", providerId: name } : acceptedOutcome;

function errorOf(given: unknown) {
  const error = objectOr(given);
  const details = arrayOr(error.details).map(objectOr);
  const detail = (type: string, field: string) =>
    details.find((each) => textOr(each["@type"]).endsWith(type) && each[field] !== undefined)?.[field];
  const violations = arrayOr(detail("google.rpc.BadRequest", "fieldViolations")).map(objectOr);
  const exceeded = arrayOr(detail("google.rpc.QuotaFailure", "violations")).map(objectOr);
  // FCM adds Apple's or a push service's error to its own code, and sometimes leaves its own code out.
  const byThirdParty =
    detail("ApnsError", "reason") ?? detail("ApnsError", "statusCode") ?? detail("WebpushError", "statusCode");
  const status = byThirdParty === undefined ? error.status : "THIRD_PARTY_AUTH_ERROR";
  return {
    /** FCM's code, otherwise Google's reason, otherwise its canonical status. */
    word: detail("FcmError", "errorCode") ?? detail("google.rpc.ErrorInfo", "reason") ?? status,
    message: [error.message, ...violations.map(({ description }) => description)].map(textOr).join("\n"),
    fields: violations.map(({ field }) => textOr(field)),
    /** Which quota was exceeded, in words. */
    quotas: exceeded.flatMap(({ subject, description }) => [textOr(subject), textOr(description)]),
  };
}

type FcmError = ReturnType<typeof errorOf>;

/** Only the details of INVALID_ARGUMENT tell whether the token, the size or another field of the request is wrong. */
function argumentFault({ message, fields }: FcmError, providerReason: string): Outcome {
  if (
    fields.some((field) => /^message\.(token|fid)$/.test(field)) ||
    /registration token is not a valid|installation id is not valid/i.test(message)
  )
    return { kind: "rejected", reason: "token-invalid", providerReason, badToken: true };
  if (/too (big|large|long)/i.test(message)) return { kind: "rejected", reason: "payload-too-large", providerReason };
  // Names of fields, not their values.
  return { kind: "rejected", reason: "payload-invalid", providerReason: shown([providerReason, ...fields].join(" ")) };
}

/** FCM uses the same code for its limit per device, which must not delay other devices. */
const limitOf = ({ message, quotas }: FcmError): "sender" | "device" =>
  [message, ...quotas].some((words) => /device/i.test(words)) ? "device" : "sender";

const objectOr = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
/** Not `String`, which throws for an object from the response with its own `toString`. */
const textOr = (value: unknown): string => (typeof value === "string" ? value : "");
const arrayOr = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
