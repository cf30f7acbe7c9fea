import { parseRetryAfter } from "@herald/kit";
import {
  acceptedOutcome,
  type Outcome,
  outcomeOfStatus,
  type ProviderAnswer,
  parseObject,
  tokenMismatch,
  wordOr,
} from "../outcome.ts";

/** Statuses with a special meaning in RFC 8030 or at the push services. */
const verdicts = new Map<number, "accepted" | "unregistered" | "forbidden" | "later">([
  [200, "accepted"],
  [201, "accepted"],
  [202, "accepted"], // a receipt follows
  [204, "accepted"],
  [301, "forbidden"],
  [302, "forbidden"],
  [303, "forbidden"],
  [307, "forbidden"],
  [308, "forbidden"],
  [404, "unregistered"],
  [406, "later"], // Microsoft's service: too many requests
  [410, "unregistered"],
]);

/** Classifies any response. Bodies are prose, except Apple's, which contain a `reason`. `now`: when the response arrived. */
export function webPushOutcome({ status, headers, body }: ProviderAnswer, now: Date): Outcome {
  const verdict = verdicts.get(status);
  if (verdict === "accepted") return acceptedAs(headers.location);
  const providerReason = wordOr(parseObject(body).reason, status);
  if (verdict === "unregistered") return { kind: "unregistered", providerReason };
  // Following a redirect would bypass the endpoint guard.
  if (verdict === "forbidden") return { kind: "rejected", reason: "endpoint-forbidden", providerReason };
  const pause = parseRetryAfter(headers["retry-after"], now);
  if (verdict === "later") return { kind: "deferred", retryAfterMs: pause, limit: "sender", providerReason };
  const outcome = outcomeOfStatus(status, providerReason, pause);
  // A push service refuses a subscription of another VAPID key like a wrong key. And devices, not projects, name push services.
  return outcome.kind === "misconfigured" ? tokenMismatch("topic-mismatch", providerReason) : outcome;
}

/** Mozilla's have 200 characters. A row with 500 of the longest takes a hundredth of MongoDB's document limit. */
const maxNameLength = 300;

/** Accepted, with the push message's resource (RFC 8030, 5) as provider id if it is short and printable. */
const acceptedAs = (location: string | undefined): Outcome =>
  location !== undefined && location.length <= maxNameLength && /^[\x21-\x7e]+$/.test(location)
    ? { kind: "accepted", providerId: location }
    : acceptedOutcome;
