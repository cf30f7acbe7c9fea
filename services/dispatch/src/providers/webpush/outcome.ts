import { parseRetryAfter } from "@herald/kit";
import {
  acceptedOutcome,
  isWebPage,
  notTheProvider,
  type Outcome,
  outcomeOfStatus,
  type ProviderAnswer,
  parseObject,
  tokenMismatch,
  wordOr,
} from "../outcome.ts";

/** Statuses with a special meaning in RFC 8030 or at the push services. */
const meanings = new Map<number, "accepted" | "unregistered" | "forbidden" | "later">([
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

/** Only a proxy or a captive portal asks for this, whatever the path. */
const networkStatuses: ReadonlySet<number> = new Set([407, 511]);
/** No push service gives a page with these, but a filter or a captive portal does. */
const pageStatuses: ReadonlySet<number> = new Set([200, 401, 403]);

/**
 * The outcome of an answer that is not the push service's. Push services have no form in common, but none answers with a web page. A
 * stranger chose the endpoint's path, and so perhaps the answer, which therefore delays only this device, and never retires it.
 */
const foreignOutcome = (answer: ProviderAnswer, origin: string): Outcome | undefined => {
  const { status, headers } = answer;
  const { host } = new URL(origin);
  if (networkStatuses.has(status)) return notTheProvider(answer, origin);
  const redirected =
    status >= 300 && status < 400 && (URL.parse(headers.location ?? "", origin)?.host ?? host) !== host;
  const page = isWebPage(answer);
  if (redirected || status === lawfulFilter || (page && pageStatuses.has(status)))
    return { ...notTheProvider(answer, origin), limit: "device" };
  if (!page || status < 400 || status >= 500 || laterStatuses.has(status)) return undefined;
  // Perhaps the push service's own page about this endpoint, so it uses an attempt.
  const { unprocessed: _, ...later } = notTheProvider(answer, origin);
  return { ...later, limit: "device" };
};
const lawfulFilter = 451;
/** Answers to wait for: a page with them, as a web server in front of a push service gives it, says the same. */
const laterStatuses: ReadonlySet<number> = new Set([406, 408, 421, 425, 429]);

/**
 * Classifies any response. Bodies are prose, except Apple's, which contain a `reason`. `now`: when the response arrived. `origin`: of the
 * endpoint.
 */
export function webPushOutcome(answer: ProviderAnswer, now: Date, origin: string): Outcome {
  const { status, headers, body } = answer;
  if (status !== 201) {
    const foreign = foreignOutcome(answer, origin);
    if (foreign) return foreign;
  }
  const meaning = meanings.get(status);
  if (meaning === "accepted") return acceptedAs(headers.location);
  const providerReason = wordOr(parseObject(body).reason, status);
  if (meaning === "unregistered") return { kind: "unregistered", providerReason };
  // Following a redirect would bypass the endpoint guard.
  if (meaning === "forbidden") return { kind: "rejected", reason: "endpoint-forbidden", providerReason };
  const pause = parseRetryAfter(headers["retry-after"], now);
  if (meaning === "later")
    return { kind: "deferred", retryAfterMs: pause, limit: "sender", unprocessed: true, providerReason };
  const outcome = outcomeOfStatus(status, providerReason, pause);
  // Apple documents it as about one subscription.
  if (outcome.kind === "deferred" && providerReason === "TooManyRequests" && pause === undefined)
    return { ...outcome, limit: "device" };
  // Who registers a device chooses its path on the server, so an answer is about the device. ntfy, for one, answers 507 for a topic
  // without a subscriber.
  if (outcome.kind === "deferred" || outcome.kind === "unknown") return { limit: "device", ...outcome };
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
