import {
  canonicalZone,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryTrace,
  type Device,
  type Notification,
  pushKeyOf,
  servingProvider,
} from "@herald/contracts";
import { noZone, timeZoneOf, topicsOf } from "@herald/rules";
import { type ChannelViews, channelSentence } from "./activity-channels.ts";
import { attemptSentences } from "./attempt-sentence.ts";
import type { Reported } from "./reported.ts";

/** The records of dispatch, registry and analytics for one notification and one device. */
export type TraceFacts = {
  readonly notification: Pick<
    Notification,
    | "id"
    | "status"
    | "targets"
    | "recipients"
    | "app"
    | "push_type"
    | "push_name"
    | "created_at"
    | "send_at"
    | "schedule"
  >;
  /** Whether the audience was read. */
  readonly expanded: boolean;
  readonly delivery?: Delivery | undefined;
  readonly attempts: readonly DeliveryAttempt[];
  readonly nextAttemptAt?: string | undefined;
  readonly device: Pick<
    Device,
    "id" | "platform" | "provider" | "status" | "topics" | "app" | "created_at" | "identifiers"
  >;
  readonly matched?: string | undefined;
  /** The device has no token of the notification's push type. */
  readonly noToken?: boolean | undefined;
  /** The notification is for devices of another app. */
  readonly otherApp?: boolean | undefined;
  /** The device of the same app installation that gets the push instead. */
  readonly reachedThrough?: string | undefined;
  /** Of the activity that it is a version of, where the device may follow one. */
  readonly channels?: ChannelViews | undefined;
  readonly reported?: Reported | undefined;
};

/** The maximum named in a sentence: a notification may have a thousand targets. */
const maxTopics = 5;

const missingTopics = ({ notification, device }: TraceFacts): string[] =>
  topicsOf(notification.targets)
    .filter((topic) => !device.topics.includes(topic))
    .slice(0, maxTopics);

/** The reasons why a device is in no batch. */
const absence = (facts: TraceFacts): string[] => {
  const { notification, device, matched, otherApp, noToken, reachedThrough, expanded, channels = [] } = facts;
  const reasons: string[] = [];
  if (device.status === "inactive") reasons.push("The device is inactive, and only active devices are sent to.");
  if (matched === undefined) {
    const topics = missingTopics(facts);
    if (topics.length > 0) reasons.push(`It is not subscribed to ${topics.map((topic) => `\`${topic}\``).join(", ")}.`);
  }
  if (otherApp)
    reasons.push(
      `It is for devices of the app \`${notification.app}\`, and the device ${device.app === undefined ? "names none" : `names \`${device.app}\``}.`,
    );
  if (noToken) reasons.push(`The device has no token for \`${pushKeyOf(notification)}\` pushes.`);
  if (device.created_at > notification.created_at)
    reasons.push(`The device registered at ${device.created_at}, after the notification was accepted.`);
  if (!expanded) {
    if (notification.status === "cancelled") return [...reasons, "It was cancelled before anything was sent."];
    if (notification.status === "expired") return [...reasons, "It expired before anything was sent."];
    if (notification.status === "proposed") return [...reasons, "It waits for approval, and nothing is sent before."];
    const isScheduled = notification.status === "scheduled";
    return [
      ...reasons,
      isScheduled ? "Its audience is read when it is sent." : "Its audience is not read completely yet.",
    ];
  }
  if (reachedThrough !== undefined)
    reasons.push(
      `The same app installation is reached through ${reachedThrough}, which its platform's own provider serves.`,
    );
  if (reasons.length === 0 && matched !== undefined)
    reasons.push("It did not match when the audience was read: the device was inactive then, or has changed since.");
  return [...reasons, channels.length > 0 ? "So nothing was sent to this device itself." : "So nothing was sent."];
};

const reportSentences = ({ received_at, opened_at, button, dismissed_at }: Reported = {}): string[] =>
  [
    ...(received_at === undefined ? [] : [{ at: received_at, sentence: `The app received it at ${received_at}.` }]),
    ...(dismissed_at === undefined
      ? []
      : [{ at: dismissed_at, sentence: `The user dismissed it at ${dismissed_at}.` }]),
    ...(opened_at === undefined
      ? []
      : [
          {
            at: opened_at,
            sentence: `Opened at ${opened_at}${button === undefined ? "" : `, with the button \`${button}\``}.`,
          },
        ]),
  ]
    .toSorted((one, other) => (one.at < other.at ? -1 : 1))
    .map(({ sentence }) => sentence);

/** When the wave of the device's time zone begins; undefined: it has begun, or there is none. */
const waveOf = ({ notification: { schedule }, device, delivery }: TraceFacts): string | undefined => {
  if (delivery || !schedule) return undefined;
  const zone = canonicalZone(timeZoneOf(device.identifiers) ?? "") ?? noZone;
  return schedule.find(({ status, time_zones }) => status === "scheduled" && time_zones.includes(zone))?.at;
};

/** Whom the notification is for, and whether the device is among them. Undefined: its recipients are not known yet. */
const whyAddressed = ({ notification, matched, delivery, expanded }: TraceFacts): string | undefined => {
  if (notification.recipients !== undefined)
    return delivery
      ? "One of its recipients has the device."
      : expanded
        ? "None of its recipients has the device."
        : undefined;
  if (matched !== undefined) return `Its target \`${matched}\` names the device.`;
  return delivery
    ? "None of its targets names the device as it is now; one did when the audience was read."
    : "None of its targets names the device.";
};

/** The events of the notification on this device, in sentences, oldest first. */
export const explain = (facts: TraceFacts): string[] => {
  const { notification, device, delivery, attempts, nextAttemptAt } = facts;
  const { push_type: pushType } = notification;
  // A Live Activity's push goes to the provider of its device.
  const provider = pushType === undefined || pushType === "liveactivity" ? servingProvider(device) : "apns";
  const scheduled = notification.status === "scheduled" && notification.send_at !== undefined;
  const wave = waveOf(facts);
  const addressed = whyAddressed(facts);
  const waits = delivery?.status === "pending" && attempts.at(-1)?.outcome !== "sending";
  return [
    `The notification was accepted at ${notification.created_at}.`,
    ...(scheduled && wave === undefined ? [`It is to be sent at ${notification.send_at}.`] : []),
    ...(addressed === undefined ? [] : [addressed]),
    ...(wave === undefined ? [] : [`The device gets it at ${wave}, when its time zone's wave begins.`]),
    ...(delivery?.user_id === undefined ? [] : [`The device belonged to the user \`${delivery.user_id}\` then.`]),
    ...(delivery ? [] : absence(facts)),
    ...(facts.channels ?? []).map(channelSentence),
    ...attemptSentences(attempts, { provider, pushType }),
    ...(nextAttemptAt !== undefined
      ? [`The next attempt is at ${nextAttemptAt}.`]
      : waits
        ? ["It waits for its turn."]
        : []),
    ...(delivery?.receipt_asked ? ["It asked the device to report the arrival."] : []),
    ...reportSentences(facts.reported),
  ];
};

/** The device's delivery status. Until the audience is read, an active device that a target matches is pending. */
const statusOf = (facts: TraceFacts): DeliveryTrace["status"] => {
  const { delivery, expanded, notification, device, matched, otherApp, noToken } = facts;
  if (delivery) return delivery.status;
  const ended = expanded || notification.status === "cancelled" || notification.status === "expired";
  return ended || matched === undefined || otherApp || noToken || device.status === "inactive"
    ? "not_addressed"
    : "pending";
};

/** The delivery trace of one notification on one device. */
export const deliveryTrace = (facts: TraceFacts): DeliveryTrace => {
  const { notification, device, delivery, matched, attempts, nextAttemptAt, reported } = facts;
  return {
    notification: { id: notification.id, status: notification.status },
    device: { id: device.id, platform: device.platform, status: device.status },
    ...(matched === undefined ? {} : { matched }),
    status: statusOf(facts),
    ...(delivery?.user_id === undefined ? {} : { user_id: delivery.user_id }),
    attempts: [...attempts],
    ...(nextAttemptAt === undefined ? {} : { next_attempt_at: nextAttemptAt }),
    ...(delivery?.receipt_asked === undefined ? {} : { receipt_asked: delivery.receipt_asked }),
    ...reported,
    explanation: explain(facts),
  };
};
