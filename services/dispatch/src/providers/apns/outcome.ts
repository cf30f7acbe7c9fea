import { retryAfterMs } from "@herald/kit";
import { type Answered, accepted, type Outcome, outcomeOfStatus, parseObject, wordOr } from "../outcome.ts";

type Verdict =
  | { readonly kind: "unregistered" | "misconfigured" | "deferred" }
  | { readonly kind: "rejected"; readonly reason: Extract<Outcome, { kind: "rejected" }>["reason"] };

const misconfigured: Verdict = { kind: "misconfigured" };
const deferred: Verdict = { kind: "deferred" };
const rejected = (reason: Extract<Outcome, { kind: "rejected" }>["reason"]): Verdict => ({ kind: "rejected", reason });

/**
 * Every answer that Apple documents ("Handling notification responses from APNs"), and one that its servers give besides.
 * What is about the key, the team or the bundle id is misconfigured: it is the same for every device of an environment.
 */
export const apnsReasons = {
  400: {
    BadCollapseId: rejected("provider-rejected"),
    BadDeviceToken: rejected("token-invalid"),
    BadExpirationDate: rejected("provider-rejected"),
    BadMessageId: rejected("provider-rejected"),
    BadPriority: rejected("provider-rejected"),
    BadTopic: misconfigured,
    DeviceTokenNotForTopic: rejected("topic-mismatch"),
    DuplicateHeaders: rejected("provider-rejected"),
    IdleTimeout: deferred,
    InvalidPushType: rejected("provider-rejected"),
    MissingDeviceToken: rejected("token-invalid"),
    MissingTopic: misconfigured,
    PayloadEmpty: rejected("payload-invalid"),
    TopicDisallowed: misconfigured,
  },
  403: {
    BadCertificate: misconfigured,
    BadCertificateEnvironment: misconfigured,
    BadEnvironmentKeyIdInToken: misconfigured,
    BadEnvironmentKeyInToken: misconfigured, // undocumented, seen in the wild
    ExpiredProviderToken: misconfigured,
    Forbidden: misconfigured,
    InvalidProviderToken: misconfigured,
    MissingProviderToken: misconfigured,
    UnrelatedKeyIdInToken: misconfigured,
  },
  404: { BadPath: rejected("token-invalid") },
  405: { MethodNotAllowed: rejected("provider-rejected") },
  410: { ExpiredToken: { kind: "unregistered" }, Unregistered: { kind: "unregistered" } },
  413: { PayloadTooLarge: rejected("payload-too-large") },
  429: { TooManyProviderTokenUpdates: deferred, TooManyRequests: deferred },
  500: { InternalServerError: deferred },
  503: { ServiceUnavailable: deferred, Shutdown: deferred },
} as const satisfies Record<number, Record<string, Verdict>>;

/** Apple refuses a new provider token within 20 minutes of the last: a minute later is early enough to look again. */
const tokenUpdatePauseMs = 60_000;

const verdicts = new Map<string, Verdict>(
  Object.entries(apnsReasons).flatMap(([status, reasons]) =>
    Object.entries(reasons).map(([reason, verdict]): [string, Verdict] => [`${status} ${reason}`, verdict]),
  ),
);

/** Classifies any answer, also one that Apple would never give. `now` is when it came. */
export function apnsOutcome({ status, headers, body }: Answered, now: Date): Outcome {
  if (status === 200) return accepted;
  const answer = parseObject(body);
  const providerReason = wordOr(answer.reason, status);
  const wait = retryAfterMs(headers["retry-after"], now);
  const verdict = verdicts.get(`${status} ${providerReason}`);
  if (verdict === undefined && status !== 410) return outcomeOfStatus(status, providerReason, wait);
  switch (verdict?.kind) {
    case "rejected":
      return { kind: "rejected", reason: verdict.reason, providerReason };
    case "misconfigured":
      return { kind: "misconfigured", providerReason };
    case "deferred": {
      const pause = providerReason === "TooManyProviderTokenUpdates" ? tokenUpdatePauseMs : undefined;
      // TooManyRequests is about one device token by Apple's words, so without a Retry-After nothing else waits for it.
      const limit = status === 429 ? "sender" : undefined;
      return { kind: "deferred", retryAfterMs: wait ?? pause, limit, providerReason };
    }
    default:
      return { kind: "unregistered", at: verdictTime(answer.timestamp, now), providerReason };
  }
}

/** Since when the token is dead, in milliseconds since 1970; a time that is none or still to come says nothing. */
function verdictTime(timestamp: unknown, now: Date): Date | undefined {
  const usable = Number.isSafeInteger(timestamp) && Number(timestamp) > 0 && Number(timestamp) <= now.getTime();
  return usable ? new Date(Number(timestamp)) : undefined;
}
