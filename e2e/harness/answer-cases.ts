import type { Delivery, Platform } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { expect } from "vitest";

/** A provider's answer for one device, and the resulting state. */
export type Case = {
  readonly platform: Platform;
  readonly rule: Omit<Rule, "provider" | "tokenPrefix">;
  readonly becomes: Pick<Delivery, "status" | "reason" | "attempts" | "possible_repeat">;
  /** How many requests the provider sees for the device. */
  readonly requests: number;
  readonly device: "active" | "inactive";
};

const rejected = (
  platform: Platform,
  rule: Case["rule"],
  reason: Delivery["reason"],
  device: Case["device"] = "active",
): Case => ({
  platform,
  rule,
  becomes: { status: "failed", reason, attempts: 1, possible_repeat: false },
  requests: 1,
  device,
});
const unregistered = (platform: Platform, rule: Case["rule"]) => rejected(platform, rule, "unregistered", "inactive");
const later = (platform: Platform, rule: Case["rule"], possibleRepeat = false): Case => ({
  platform,
  rule: { ...rule, times: 1 },
  becomes: { status: "accepted", attempts: 2, possible_repeat: possibleRepeat },
  requests: 2,
  device: "active",
});
/** Something answers in the provider's place. */
const page = "<!DOCTYPE html><title>Sign in</title>";
const foreign = (platform: Platform, rule: Case["rule"]): Case => {
  const one = later(platform, rule);
  return { ...one, becomes: { ...one.becomes, attempts: expect.any(Number) } };
};
/** The provider may have accepted the push. */
const unknown = (platform: Platform, rule: Case["rule"]) => later(platform, rule, true);
/** The provider did not process the push, so a resend cannot repeat it. */
const unprocessed = (platform: Platform, rule: Case["rule"]): Case => ({
  platform,
  rule: { ...rule, times: 1 },
  becomes: { status: "accepted", attempts: 1, possible_repeat: false },
  requests: 2,
  device: "active",
});

const apns = (status: number, reasons: readonly string[], slug: Delivery["reason"]) =>
  reasons.map((reason) => rejected("ios", { status, reason }, slug));
const badToken = {
  error: {
    code: 400,
    message: "Invalid",
    status: "INVALID_ARGUMENT",
    details: [
      { "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: "INVALID_ARGUMENT" },
      { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{ field: "message.token" }] },
    ],
  },
};
export const platforms: readonly Platform[] = ["ios", "android", "web"];

export const aboutOneDevice: readonly Case[] = [
  rejected("ios", { status: 400, reason: "BadDeviceToken" }, "token-invalid", "inactive"),
  ...apns(400, ["MissingDeviceToken"], "token-invalid"),
  ...apns(400, ["DeviceTokenNotForTopic"], "topic-mismatch"),
  ...apns(400, ["PayloadEmpty"], "payload-invalid"),
  ...apns(
    400,
    ["BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "DuplicateHeaders", "InvalidPushType"],
    "provider-rejected",
  ),
  ...apns(404, ["BadPath"], "token-invalid"),
  ...apns(405, ["MethodNotAllowed"], "provider-rejected"),
  ...apns(413, ["PayloadTooLarge"], "payload-too-large"),
  unregistered("ios", { status: 410, reason: "Unregistered" }),
  unregistered("ios", { status: 410, reason: "ExpiredToken" }),
  later("ios", { status: 400, reason: "IdleTimeout" }),
  unprocessed("ios", { status: 429, reason: "TooManyRequests" }),
  later("ios", { status: 500, reason: "InternalServerError" }),
  unprocessed("ios", { status: 503, reason: "ServiceUnavailable" }),
  unprocessed("ios", { status: 503, reason: "Shutdown" }),

  rejected("android", { status: 400, reason: "INVALID_ARGUMENT" }, "payload-invalid"),
  rejected("android", { status: 400, body: JSON.stringify(badToken) }, "token-invalid", "inactive"),
  rejected("android", { status: 401, reason: "THIRD_PARTY_AUTH_ERROR" }, "token-kind-mismatch"),
  rejected("android", { status: 403, reason: "SENDER_ID_MISMATCH" }, "topic-mismatch"),
  rejected("android", { status: 404, reason: "NOT_FOUND" }, "token-invalid"),
  unregistered("android", { status: 404, reason: "UNREGISTERED" }),
  later("android", { status: 500, reason: "INTERNAL" }),
  unprocessed("android", { status: 503, reason: "UNAVAILABLE" }),
  later("android", { status: 504, reason: "DEADLINE_EXCEEDED" }),

  rejected("web", { status: 400 }, "provider-rejected"),
  rejected("web", { status: 401 }, "topic-mismatch"),
  rejected("web", { status: 403 }, "topic-mismatch"),
  rejected("web", { status: 413 }, "payload-too-large"),
  rejected("web", { status: 301, headers: { location: "/elsewhere" } }, "endpoint-forbidden"),
  unregistered("web", { status: 404 }),
  unregistered("web", { status: 410 }),
  unprocessed("web", { status: 429 }),
  later("web", { status: 500 }),
  unprocessed("web", { status: 503 }),
  unprocessed("web", { known: "ntfy-too-many-requests" }),
  later("web", { known: "ntfy-no-subscriber" }),
  unregistered("web", { known: "autopush-unsubscribed" }),
  rejected("web", { known: "autopush-other-key" }, "topic-mismatch"),

  foreign("ios", { status: 200, body: page }),
  foreign("ios", { status: 403, body: page }),
  foreign("ios", { status: 401, body: "" }),
  foreign("ios", { status: 407, body: "" }),
  foreign("ios", { status: 410, body: page }),
  foreign("android", { status: 200, body: page }),
  foreign("android", { status: 403, body: page }),
  foreign("android", { status: 404, body: page }),
  foreign("android", { status: 511, body: page }),
  foreign("web", { status: 200, body: page }),
  foreign("web", { status: 302, headers: { location: "https://127.0.0.1/login" } }),
  foreign("web", { status: 403, body: page }),
  foreign("web", { status: 404, body: page }),
  foreign("web", { status: 407, body: "" }),

  ...platforms.flatMap((platform) => [
    unknown(platform, { hang: true }),
    unknown(platform, { rst: "INTERNAL_ERROR" }),
    unknown(platform, { closeSocket: true }),
    unknown(platform, { status: 503, closeSocket: true }), // in the middle of its answer
    unprocessed(platform, { rst: "REFUSED_STREAM" }),
  ]),
];

/** A refusal of the key, the team or the account. It affects every device, so the provider is paused until an operator fixes it. */
export type Refusal = {
  readonly platform: Platform;
  readonly rule: Case["rule"];
  /** Google's token endpoint refuses. */
  readonly at?: "fcm-token";
};
const refused = (platform: Platform, status: number, ...reasons: readonly string[]): Refusal[] =>
  reasons.map((reason) => ({ platform, rule: { status, reason } }));

export const refusals: readonly Refusal[] = [
  ...refused("ios", 400, "BadTopic", "MissingTopic", "TopicDisallowed"),
  ...refused("ios", 403, "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "Forbidden"),
  ...refused("ios", 403, "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken"),
  ...refused("android", 401, "UNAUTHENTICATED"),
  ...refused("android", 403, "PERMISSION_DENIED"),
  { platform: "android", rule: { status: 400, reason: "invalid_grant" }, at: "fcm-token" },
];

/** A Retry-After of a provider, or the delay that its documentation asks for if the answer has none. */
export type Throttle = {
  readonly platform: Platform;
  readonly headers?: Record<string, string>;
  readonly seconds: number;
};
const throttlesOf = (...all: readonly number[]): Throttle[] =>
  all.flatMap((seconds) =>
    platforms.map((platform) => ({ platform, seconds, headers: { "retry-after": String(seconds) } })),
  );
export const shortThrottles: readonly Throttle[] = throttlesOf(5, 1);
export const throttles: readonly Throttle[] = [
  { platform: "android", seconds: 60 },
  ...throttlesOf(30),
  ...shortThrottles,
];
