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

/** What RFC 8030 and the push services mean by a status where it is not what it says everywhere. */
const verdicts = new Map<number, "accepted" | "unregistered" | "forbidden" | "later">([
  [200, "accepted"],
  [201, "accepted"],
  [202, "accepted"], // with a receipt to come
  [204, "accepted"],
  [301, "forbidden"],
  [302, "forbidden"],
  [303, "forbidden"],
  [307, "forbidden"],
  [308, "forbidden"],
  [404, "unregistered"],
  [406, "later"], // how Microsoft's service says that it was asked too often
  [410, "unregistered"],
]);

/** Classifies any answer. Bodies are prose, except Apple's, which has a `reason`. `now` is when it came. */
export function webPushOutcome({ status, headers, body }: Answered, now: Date): Outcome {
  const verdict = verdicts.get(status);
  if (verdict === "accepted") return acceptedAs(headers.location);
  const providerReason = wordOr(parseObject(body).reason, status);
  if (verdict === "unregistered") return { kind: "unregistered", providerReason };
  // An endpoint that leads elsewhere would lead past the guard.
  if (verdict === "forbidden") return { kind: "rejected", reason: "endpoint-forbidden", providerReason };
  const pause = retryAfterMs(headers["retry-after"], now);
  if (verdict === "later") return { kind: "deferred", retryAfterMs: pause, limit: "sender", providerReason };
  const outcome = outcomeOfStatus(status, providerReason, pause);
  // A subscription that was made with another VAPID key is refused just like a wrong key, and push services are named by devices.
  return outcome.kind === "misconfigured" ? tokenMismatch("topic-mismatch", providerReason) : outcome;
}

/** Mozilla's have two hundred characters; a row of five hundred of the longest is a hundredth of what a document may be. */
const maxNameLength = 300;

/** The push message's resource (RFC 8030, 5), where the service gives one that is fit to be kept. */
const acceptedAs = (location: string | undefined): Outcome =>
  location !== undefined && location.length <= maxNameLength && /^[\x21-\x7e]+$/.test(location)
    ? { kind: "accepted", providerId: location }
    : accepted;
