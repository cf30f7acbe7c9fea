import {
  adviceOn,
  type DeliveryAttempt,
  type DeliveryReason,
  deliveryReasons,
  type Provider,
  type PushType,
} from "@herald/contracts";

/** What decides how an attempt is told. `isFirst`: nothing was sent to the device before it. */
type AttemptContext = {
  readonly provider: Provider;
  readonly pushType?: PushType | undefined;
  readonly isFirst: boolean;
  /** Quiet hours delayed the push before. */
  readonly wasDelayed: boolean;
};

export const providerNames: Readonly<Record<Provider, string>> = {
  apns: "APNs",
  fcm: "FCM",
  webpush: "the push service",
};

const kept = "or because too many devices of this notification got the same answer";

/** Reasons whose general sentence, in `deliveryReasons`, names cases that are known not to be this attempt's. */
const sentenceOfReason = (
  reason: DeliveryReason,
  { attempt, until }: DeliveryAttempt,
  { provider, pushType, wasDelayed }: AttemptContext,
): string | undefined => {
  switch (reason) {
    case "unregistered":
      return `The provider reported that the push token is no longer valid. Herald ${pushType === undefined ? "deactivated the device" : `removed that token, which is for \`${pushType}\` pushes; the device stays active`}.`;
    case "unregistered-kept":
      return pushType === undefined
        ? undefined
        : `The provider reported that the push token is not valid. Herald kept it because the app has sent it again, ${kept}.`;
    case "token-invalid":
      if (attempt === undefined) return "Nothing can be sent to this push token. Herald deactivated the device.";
      return provider === "apns"
        ? undefined
        : "The provider does not recognise the push token. Herald deactivated the device, unless too many devices of this notification got such an answer.";
    case "quiet-hours":
      if (until !== undefined) return `Its quiet hours end at ${until}, after the notification's time to live.`;
      return wasDelayed
        ? "It waited for the end of quiet hours longer than its time to live."
        : "It would have arrived in quiet hours, in which such notifications are skipped.";
    default:
      return undefined;
  }
};

const whyNot = (attempt: DeliveryAttempt, answer: string | undefined, context: AttemptContext): string => {
  const reason = attempt.reason ?? attempt.outcome;
  if (!Object.hasOwn(deliveryReasons, reason)) return reason;
  const known = reason as DeliveryReason;
  return adviceOn(answer ?? "") ?? sentenceOfReason(known, attempt, context) ?? deliveryReasons[known];
};

/** One attempt in a sentence or two. */
export const attemptSentence = (attempt: DeliveryAttempt, context: AttemptContext): string => {
  const { at, outcome, until } = attempt;
  const provider = providerNames[context.provider];
  const wasSent = attempt.attempt !== undefined;
  // Herald's own refusals may have no word.
  const answer = attempt.provider_reason || undefined;
  const inBrackets = answer === undefined ? "" : ` (${answer})`;
  switch (outcome) {
    case "accepted":
      return `Sent at ${at} to ${provider}, which accepted it.`;
    case "deferred":
      return wasSent
        ? `Sent at ${at} to ${provider}: ${answer ?? "not now"}.`
        : `At ${at} ${provider} could not take it: ${answer ?? "not now"}.`;
    case "unknown":
      return `Sent at ${at} to ${provider}, which gave no answer${inBrackets}: it may have arrived.`;
    case "paused":
      return `At ${at} ${provider} refused the project's credential${inBrackets}: the push waits until ${provider} accepts the credential or the settings change.`;
    case "blocked":
      return `At ${at} it was not sent, because ${provider} takes no push for now${answer === undefined ? "" : `: ${answer}`}.`;
    case "delayed":
      return `At ${at} the device was in quiet hours: the push waits for their end at ${until}.`;
    case "sending":
      return `Herald began to send it to ${provider} at ${at}, and has no answer yet.`;
    case "failed":
    case "expired":
    case "cancelled":
    case "skipped": {
      const why = whyNot(attempt, answer, context);
      if (wasSent)
        return answer === undefined
          ? `Sent at ${at} to ${provider}. ${why}`
          : `Sent at ${at} to ${provider}: ${answer}. ${why}`;
      return `Not sent${context.isFirst ? "" : " again"} at ${at}: ${answer === undefined ? "" : `${answer}. `}${why}`;
    }
  }
};

/** All attempts of a device, oldest first. */
export const attemptSentences = (
  attempts: readonly DeliveryAttempt[],
  of: Pick<AttemptContext, "provider" | "pushType">,
): string[] =>
  attempts.map((attempt, index) => {
    const before = attempts.slice(0, index);
    return attemptSentence(attempt, {
      ...of,
      isFirst: before.every(({ attempt: number }) => number === undefined),
      wasDelayed: before.some(({ outcome }) => outcome === "delayed"),
    });
  });
