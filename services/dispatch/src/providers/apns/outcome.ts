import { parseRetryAfter } from "@herald/kit";
import {
  acceptedOutcome,
  isFailure,
  isUnprocessed,
  isWebPage,
  isWord,
  notTheProvider,
  type Outcome,
  outcomeOfStatus,
  type ProviderAnswer,
  parseObject,
  wordOr,
} from "../outcome.ts";

/** A reason: the push is rejected for it. */
type Meaning = "unregistered" | "misconfigured" | "deferred" | RejectedReason;
type RejectedReason = Extract<Outcome, { kind: "rejected" }>["reason"];

/**
 * Every error response that Apple documents ("Handling notification responses from APNs"), and one that it does not document.
 * Errors about the key, the team or the bundle id are `misconfigured`: they are the same for every device of an environment.
 */
export const apnsReasons = {
  400: {
    BadCollapseId: "provider-rejected",
    BadDeviceToken: "token-invalid",
    BadExpirationDate: "provider-rejected",
    BadMessageId: "provider-rejected",
    BadPriority: "provider-rejected",
    BadTopic: "misconfigured",
    DeviceTokenNotForTopic: "topic-mismatch",
    DuplicateHeaders: "provider-rejected",
    IdleTimeout: "deferred",
    InvalidPushType: "provider-rejected",
    MissingDeviceToken: "token-invalid",
    MissingTopic: "misconfigured",
    PayloadEmpty: "payload-invalid",
    TopicDisallowed: "misconfigured",
  },
  403: {
    BadCertificate: "misconfigured",
    BadCertificateEnvironment: "misconfigured",
    BadEnvironmentKeyIdInToken: "misconfigured",
    BadEnvironmentKeyInToken: "misconfigured", // undocumented, seen in the wild
    ExpiredProviderToken: "misconfigured",
    Forbidden: "misconfigured",
    InvalidProviderToken: "misconfigured",
    MissingProviderToken: "misconfigured",
    UnrelatedKeyIdInToken: "misconfigured",
  },
  404: { BadPath: "token-invalid" },
  405: { MethodNotAllowed: "provider-rejected" },
  410: { ExpiredToken: "unregistered", Unregistered: "unregistered" },
  413: { PayloadTooLarge: "payload-too-large" },
  429: { TooManyProviderTokenUpdates: "deferred", TooManyRequests: "deferred" },
  500: { InternalServerError: "deferred" },
  503: { ServiceUnavailable: "deferred", Shutdown: "deferred" },
} as const satisfies Record<number, Record<string, Meaning>>;

/** Apple refuses a new provider token within 20 minutes of the last one. The push is retried after a minute. */
const tokenUpdatePauseMs = 60_000;

const meanings = new Map<string, Meaning>(
  Object.entries(apnsReasons).flatMap(([status, reasons]) =>
    Object.entries(reasons).map(([reason, meaning]): [string, Meaning] => [`${status} ${reason}`, meaning]),
  ),
);

/** Classifies any response, even one that Apple would never send. `now`: when it arrived. `origin`: of the host that was asked. */
export function apnsOutcome(given: ProviderAnswer, now: Date, origin: string): Outcome {
  const { status, headers, body } = given;
  // Each answer of Apple has one of these headers: to a broadcast the second.
  if (status === 200 && (headers["apns-id"] ?? headers["apns-request-id"]) !== undefined) return acceptedOutcome;
  const answer = parseObject(body);
  // Every error of Apple is JSON with a reason, but one that is about to fail may have lost its body.
  const isApples = status !== 200 && (isWord(answer.reason) || (isFailure(status) && !isWebPage(given)));
  if (!isApples) return notTheProvider(given, origin);
  const providerReason = wordOr(answer.reason, status);
  const wait = parseRetryAfter(headers["retry-after"], now);
  const meaning = meanings.get(`${status} ${providerReason}`);
  if (meaning === undefined && status !== 410) return outcomeOfStatus(status, providerReason, wait);
  switch (meaning) {
    case "misconfigured":
      return { kind: "misconfigured", providerReason };
    case "deferred": {
      const pause = providerReason === "TooManyProviderTokenUpdates" ? tokenUpdatePauseMs : undefined;
      const retryAfterMs = wait ?? pause;
      // Apple documents TooManyRequests as about one device token, so without a Retry-After, no other device waits.
      const limit = status !== 429 ? undefined : retryAfterMs === undefined ? "device" : "sender";
      return { kind: "deferred", retryAfterMs, limit, unprocessed: isUnprocessed(status), providerReason };
    }
    case "unregistered":
    case undefined:
      return { kind: "unregistered", at: unregisteredAt(answer.timestamp, now), providerReason };
    default:
      return { kind: "rejected", reason: meaning, providerReason };
  }
}

/** Since when the token is dead. `timestamp` is in milliseconds since 1970; an invalid or future one is ignored. */
function unregisteredAt(timestamp: unknown, now: Date): Date | undefined {
  const usable = Number.isSafeInteger(timestamp) && Number(timestamp) > 0 && Number(timestamp) <= now.getTime();
  return usable ? new Date(Number(timestamp)) : undefined;
}
