import { type DeliveryAttempt, newDeviceId, newNotificationId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { deliveryTrace, type TraceFacts } from "./delivery-trace.ts";

const t = (minute: number) => `2030-01-31T09:0${minute}:00.000Z`;
const id = newDeviceId(new Date());
const attempt = (
  minute: number,
  outcome: DeliveryAttempt["outcome"],
  rest: Partial<DeliveryAttempt> = {},
): DeliveryAttempt => ({ attempt: 1, at: t(minute), outcome, possible_repeat: false, ...rest });
const delivery = (status: NonNullable<TraceFacts["delivery"]>["status"]): TraceFacts["delivery"] => ({
  device_id: id,
  platform: "ios",
  status,
  attempts: 1,
  possible_repeat: false,
  at: t(3),
});

const traceOf = ({
  notification,
  device,
  ...rest
}: Partial<{ [Key in keyof TraceFacts]: object | string | boolean }>) =>
  deliveryTrace({
    notification: {
      id: newNotificationId(new Date()),
      status: "completed",
      targets: ["news", "sport"],
      created_at: t(1),
      ...(notification as object),
    },
    device: { id, platform: "ios", status: "active", topics: ["news"], created_at: t(0), ...(device as object) },
    expanded: true,
    attempts: [],
    ...rest,
  } as TraceFacts);

describe("the delivery trace of a device", () => {
  test.each<[string, Parameters<typeof traceOf>[0], string, string[]]>([
    [
      "accepted and opened",
      {
        matched: "news",
        delivery: delivery("accepted"),
        attempts: [attempt(3, "accepted")],
        reported: { opened_at: t(5) },
      },
      "accepted",
      ["Its target `news` names the device.", `Sent at ${t(3)} to APNs, which accepted it.`, `Opened at ${t(5)}.`],
    ],
    [
      "retired",
      {
        matched: "news",
        delivery: delivery("failed"),
        attempts: [attempt(3, "failed", { reason: "unregistered", provider_reason: "410 Unregistered" })],
      },
      "failed",
      [
        "Its target `news` names the device.",
        `Sent at ${t(3)} to APNs: 410 Unregistered. The provider reported that the push token is no longer valid. Herald deactivated the device.`,
      ],
    ],
    [
      "refused by Apple for the project's subject",
      {
        device: { platform: "web" },
        matched: "news",
        delivery: delivery("failed"),
        attempts: [attempt(3, "failed", { reason: "topic-mismatch", provider_reason: "BadJwtToken" })],
      },
      "failed",
      [
        "Its target `news` names the device.",
        `Sent at ${t(3)} to the push service: BadJwtToken. Apple refuses the token that Herald signs for Web Push. Put a \`subject\` with a host of the Internet into the provider's settings, and check the clock of the machine that runs dispatch.`,
      ],
    ],
    [
      "tried again",
      {
        device: { platform: "android" },
        matched: "all",
        delivery: delivery("pending"),
        attempts: [attempt(2, "deferred", { provider_reason: "503" }), attempt(3, "unknown"), attempt(4, "paused")],
        nextAttemptAt: t(6),
      },
      "pending",
      [
        "Its target `all` names the device.",
        `Sent at ${t(2)} to FCM: 503.`,
        `Sent at ${t(3)} to FCM, which gave no answer: it may have arrived.`,
        `At ${t(4)} FCM refused the project's credential: the push waits until FCM accepts the credential or the settings change.`,
        `The next attempt is at ${t(6)}.`,
      ],
    ],
    [
      "delayed by quiet hours",
      {
        matched: "news",
        delivery: delivery("pending"),
        attempts: [attempt(3, "delayed", { reason: "quiet-hours", until: t(8) })],
        nextAttemptAt: t(8),
      },
      "pending",
      [
        "Its target `news` names the device.",
        `At ${t(3)} the device was in quiet hours: the push waits for their end at ${t(8)}.`,
        `The next attempt is at ${t(8)}.`,
      ],
    ],
    [
      "under way, named no more",
      { device: { platform: "web" }, delivery: delivery("pending"), attempts: [attempt(3, "sending")] },
      "pending",
      [
        "None of its targets names the device as it is now; one did when the audience was read.",
        `Herald began to send it to the push service at ${t(3)}, and has no answer yet.`,
      ],
    ],
    [
      "without provider settings",
      {
        matched: "all",
        delivery: delivery("failed"),
        attempts: [attempt(3, "failed", { attempt: undefined, reason: "provider-not-configured" })],
      },
      "failed",
      [
        "Its target `all` names the device.",
        `Not sent at ${t(3)}: The project has no provider for this device's platform.`,
      ],
    ],
    [
      "not subscribed",
      { device: { topics: [] } },
      "not_addressed",
      ["None of its targets names the device.", "It is not subscribed to `news`, `sport`.", "So nothing was sent."],
    ],
    [
      "inactive",
      { matched: "news", device: { status: "inactive" } },
      "not_addressed",
      [
        "Its target `news` names the device.",
        "The device is inactive, and only active devices are sent to.",
        "So nothing was sent.",
      ],
    ],
    [
      "registered later",
      { matched: "news", device: { created_at: t(2) } },
      "not_addressed",
      [
        "Its target `news` names the device.",
        `The device registered at ${t(2)}, after the notification was accepted.`,
        "So nothing was sent.",
      ],
    ],
    [
      "changed since",
      { matched: "news" },
      "not_addressed",
      [
        "Its target `news` names the device.",
        "It did not match when the audience was read: the device was inactive then, or has changed since.",
        "So nothing was sent.",
      ],
    ],
    [
      "that follows a channel",
      { matched: "news", channels: [{ app: "com.example.app", environment: "sandbox", version: 3 }] },
      "not_addressed",
      [
        "Its target `news` names the device.",
        "It did not match when the audience was read: the device was inactive then, or has changed since.",
        "So nothing was sent to this device itself.",
        "Devices with the channel of `com.example.app` (sandbox) get versions by a broadcast, last version 3. Apple gives no result per device.",
      ],
    ],
    [
      "scheduled",
      { matched: "news", expanded: false, notification: { status: "scheduled", send_at: t(9) } },
      "pending",
      [`It is to be sent at ${t(9)}.`, "Its target `news` names the device.", "Its audience is read when it is sent."],
    ],
    [
      "being expanded",
      { matched: "news", expanded: false, notification: { status: "sending" } },
      "pending",
      ["Its target `news` names the device.", "Its audience is not read completely yet."],
    ],
    [
      "not read from its file yet",
      { expanded: false, notification: { status: "accepted", targets: [], recipients: { lines: 0 } } },
      "not_addressed",
      ["Its audience is not read completely yet."],
    ],
    [
      "cancelled before",
      { matched: "news", expanded: false, notification: { status: "cancelled" } },
      "not_addressed",
      ["Its target `news` names the device.", "It was cancelled before anything was sent."],
    ],
  ])("%s", (_, facts, status, sentences) => {
    const trace = traceOf(facts);
    expect(trace.status).toBe(status);
    expect(trace.explanation).toEqual([`The notification was accepted at ${t(1)}.`, ...sentences]);
  });
});
