import { DeliveryAttempt, deliveryReasons, newDeviceId, newNotificationId } from "@herald/contracts";
import { expect, test } from "vitest";
import { attemptSentences } from "./attempt-sentence.ts";
import { deliveryTrace } from "./delivery-trace.ts";

type Told = Omit<DeliveryAttempt, "at" | "possible_repeat">;
type Of = Parameters<typeof attemptSentences>[1];

const at = "2030-01-31T09:00:00.000Z";
const until = "2030-01-31T10:00:00.000Z";
const apns: Of = { provider: "apns" };
const voip: Of = { provider: "apns", pushType: "voip" };
const fcm: Of = { provider: "fcm" };

const tell = (attempts: readonly Told[], of: Of): string | undefined =>
  attemptSentences(
    attempts.map((one) => ({ ...one, at, possible_repeat: false })),
    of,
  ).at(-1);

/** The last of the attempts in a sentence. */
const cases: readonly (readonly [name: string, of: Of, attempts: readonly Told[], sentence: string])[] = [
  ["accepted", apns, [{ attempt: 1, outcome: "accepted" }], `Sent at ${at} to APNs, which accepted it.`],
  [
    "deferred after it was processed",
    fcm,
    [{ attempt: 1, outcome: "deferred", provider_reason: "500 INTERNAL" }],
    `Sent at ${at} to FCM: 500 INTERNAL.`,
  ],
  [
    "deferred without being processed",
    apns,
    [{ outcome: "deferred", provider_reason: "cannot reach api.push.apple.com" }],
    `At ${at} APNs could not take it: cannot reach api.push.apple.com.`,
  ],
  [
    "without an answer",
    { provider: "webpush" },
    [{ attempt: 1, outcome: "unknown", provider_reason: "no answer in 10 s" }],
    `Sent at ${at} to the push service, which gave no answer (no answer in 10 s): it may have arrived.`,
  ],
  [
    "paused",
    apns,
    [{ outcome: "paused", provider_reason: "InvalidProviderToken" }],
    `At ${at} APNs refused the project's credential (InvalidProviderToken): the push waits until APNs accepts the credential or the settings change.`,
  ],
  [
    "blocked",
    fcm,
    [{ outcome: "blocked", provider_reason: "HTTP 503" }],
    `At ${at} it was not sent, because FCM takes no push for now: HTTP 503.`,
  ],
  [
    "delayed",
    apns,
    [{ outcome: "delayed", reason: "quiet-hours", until }],
    `At ${at} the device was in quiet hours: the push waits for their end at ${until}.`,
  ],
  [
    "in progress",
    apns,
    [{ attempt: 1, outcome: "sending" }],
    `Herald began to send it to APNs at ${at}, and has no answer yet.`,
  ],
  [
    "a dead token of an ordinary push",
    apns,
    [{ attempt: 1, outcome: "failed", reason: "unregistered", provider_reason: "Unregistered" }],
    `Sent at ${at} to APNs: Unregistered. The provider reported that the push token is no longer valid. Herald deactivated the device.`,
  ],
  [
    "a dead token of a push type",
    voip,
    [{ attempt: 1, outcome: "failed", reason: "unregistered", provider_reason: "Unregistered" }],
    `Sent at ${at} to APNs: Unregistered. The provider reported that the push token is no longer valid. Herald removed that token, which is for \`voip\` pushes; the device stays active.`,
  ],
  [
    "a dead token of a push type that stays",
    voip,
    [{ attempt: 1, outcome: "failed", reason: "unregistered-kept", provider_reason: "Unregistered" }],
    `Sent at ${at} to APNs: Unregistered. The provider reported that the push token is not valid. Herald kept it because the app has sent it again, or because too many devices of this notification got the same answer.`,
  ],
  [
    "a token that is none",
    apns,
    [{ outcome: "failed", reason: "token-invalid", provider_reason: "not a device token: not hexadecimal" }],
    `Not sent at ${at}: not a device token: not hexadecimal. Nothing can be sent to this push token. Herald deactivated the device.`,
  ],
  [
    "an unknown token, where there are no environments",
    fcm,
    [{ attempt: 1, outcome: "failed", reason: "token-invalid", provider_reason: "INVALID_ARGUMENT" }],
    `Sent at ${at} to FCM: INVALID_ARGUMENT. The provider does not recognise the push token. Herald deactivated the device, unless too many devices of this notification got such an answer.`,
  ],
  [
    "a text that could not be rendered",
    apns,
    [{ outcome: "failed", reason: "render-failed", provider_reason: "title: too many steps" }],
    `Not sent at ${at}: title: too many steps. A text could not be rendered with the recipient's values.`,
  ],
  [
    "too large",
    apns,
    [{ outcome: "failed", reason: "payload-too-large", provider_reason: "4100 bytes, 4096 fit" }],
    `Not sent at ${at}: 4100 bytes, 4096 fit. The rendered payload is larger than the provider accepts.`,
  ],
  [
    "refused by Herald without a word",
    apns,
    [{ outcome: "failed", reason: "app-not-configured", provider_reason: "" }],
    `Not sent at ${at}: ${deliveryReasons["app-not-configured"]}`,
  ],
  [
    "a value that is missing",
    apns,
    [{ outcome: "skipped", reason: "value-missing" }],
    `Not sent at ${at}: ${deliveryReasons["value-missing"]}`,
  ],
  [
    "skipped in quiet hours",
    apns,
    [{ outcome: "skipped", reason: "quiet-hours" }],
    `Not sent at ${at}: It would have arrived in quiet hours, in which such notifications are skipped.`,
  ],
  [
    "quiet hours that outlast it",
    apns,
    [{ outcome: "skipped", reason: "quiet-hours", until }],
    `Not sent at ${at}: Its quiet hours end at ${until}, after the notification's time to live.`,
  ],
  [
    "delayed too long",
    apns,
    [
      { outcome: "delayed", reason: "quiet-hours", until },
      { outcome: "skipped", reason: "quiet-hours" },
    ],
    `Not sent at ${at}: It waited for the end of quiet hours longer than its time to live.`,
  ],
  [
    "expired behind a blocked server",
    apns,
    [{ outcome: "expired", reason: "expired", provider_reason: "HTTP 503" }],
    `Not sent at ${at}: HTTP 503. ${deliveryReasons.expired}`,
  ],
  [
    "expired after an attempt",
    apns,
    [
      { attempt: 1, outcome: "deferred", provider_reason: "500" },
      { outcome: "expired", reason: "expired" },
    ],
    `Not sent again at ${at}: ${deliveryReasons.expired}`,
  ],
  [
    "cancelled",
    apns,
    [{ outcome: "cancelled", reason: "cancelled" }],
    `Not sent at ${at}: ${deliveryReasons.cancelled}`,
  ],
];

test.each(cases)("the sentence of an attempt that is %s", (_, of, attempts, sentence) => {
  expect(tell(attempts, of)).toBe(sentence);
});

test("every outcome has a case", () => {
  const told = new Set(cases.map(([, , attempts]) => attempts.at(-1)?.outcome));
  expect(DeliveryAttempt.shape.outcome.options.filter((outcome) => !told.has(outcome))).toEqual([]);
});

test.each(Object.keys(deliveryReasons))("%s of an ordinary push to FCM names nothing of other pushes", (reason) => {
  for (const wasSent of [true, false]) {
    const attempt = { outcome: "failed", reason, ...(wasSent && { attempt: 1, provider_reason: "a word" }) } as const;
    const sentence = tell([attempt], fcm) ?? "";
    expect(sentence).not.toMatch(/push_type|APNs environment could|or waited/);
    if (!wasSent) expect(sentence).not.toMatch(/Sent at/);
  }
});

test("a Live Activity of a device that FCM serves was sent to FCM", () => {
  const id = newDeviceId(new Date());
  const { explanation } = deliveryTrace({
    notification: {
      id: newNotificationId(new Date()),
      status: "completed",
      targets: [],
      push_type: "liveactivity",
      created_at: at,
    },
    device: { id, platform: "ios", provider: "fcm", status: "active", topics: [], created_at: at, identifiers: {} },
    expanded: true,
    delivery: { device_id: id, platform: "ios", status: "accepted", attempts: 1, possible_repeat: false, at },
    attempts: [{ attempt: 1, at, outcome: "accepted", possible_repeat: false }],
  });
  expect(explanation).toContain(`Sent at ${at} to FCM, which accepted it.`);
});
