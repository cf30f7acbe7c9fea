import type { ProviderReply } from "../exchange.ts";

/** FCM's own error codes: HTTP status, Google's canonical status, message. */
const fcmErrors = {
  INVALID_ARGUMENT: [400, "INVALID_ARGUMENT", "Request contains an invalid argument."],
  THIRD_PARTY_AUTH_ERROR: [401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service"],
  SENDER_ID_MISMATCH: [403, "PERMISSION_DENIED", "SenderId mismatch"],
  UNREGISTERED: [404, "NOT_FOUND", "Requested entity was not found."],
  QUOTA_EXCEEDED: [429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Send requests'."],
  INTERNAL: [500, "INTERNAL", "Internal error encountered."],
  UNAVAILABLE: [503, "UNAVAILABLE", "The service is currently unavailable."],
} as const satisfies Record<string, readonly [number, string, string]>;
type FcmErrorCode = keyof typeof fcmErrors;

const detailOf = (errorCode: FcmErrorCode) => ({
  "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
  errorCode,
});

const isFcmError = (reason: string): reason is FcmErrorCode => Object.hasOwn(fcmErrors, reason);

/** Google's status (google.rpc.Code) for an HTTP status. */
const canonical: Readonly<Record<number, string>> = {
  ...Object.fromEntries(Object.values(fcmErrors).map(([status, google]) => [status, google])),
  409: "ABORTED",
  499: "CANCELLED",
  501: "UNIMPLEMENTED",
  504: "DEADLINE_EXCEEDED",
};

const json = { "content-type": "application/json; charset=UTF-8" };

const reply = (
  code: number,
  status: string,
  message: string,
  details: readonly object[],
  reason: string,
): ProviderReply => ({
  status: code,
  headers: json,
  body: JSON.stringify({ error: { code, message, status, ...(details.length > 0 && { details }) } }),
  reason,
});

/** FCM's error code for an HTTP status; undefined if it has none. */
const usual = (status: number): FcmErrorCode | undefined =>
  (Object.keys(fcmErrors) as FcmErrorCode[]).find((code) => fcmErrors[code][0] === status);

/**
 * An error in Google's shape. An FCM error code as `reason` becomes the FcmError detail; any other `reason` becomes Google's status.
 * Without a `reason`, the HTTP status selects its usual FCM code.
 */
export function fcmError(status: number, reason: string | undefined = usual(status)): ProviderReply {
  const known = reason !== undefined && isFcmError(reason) ? reason : undefined;
  const google = known === undefined ? reason : fcmErrors[known][1];
  const text = google ?? canonical[status] ?? "UNKNOWN";
  const message = known === undefined ? `The request ended with ${text}.` : fcmErrors[known][2];
  return reply(status, text, message, known === undefined ? [] : [detailOf(known)], reason ?? text);
}

export interface Violation {
  /** Path in the request, `message.data`. */
  readonly field: string;
  readonly description: string;
}

/** 400 with all invalid fields, as a google.rpc.BadRequest. */
export function invalidArgument(violations: readonly Violation[]): ProviderReply {
  const bad = { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: violations };
  const message = violations[0]?.description ?? fcmErrors.INVALID_ARGUMENT[2];
  const problem = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return {
    ...reply(400, "INVALID_ARGUMENT", message, [detailOf("INVALID_ARGUMENT"), bad], "INVALID_ARGUMENT"),
    problem,
  };
}

/** 401 for an invalid credential of the sender. It is not about the device: google.rpc.ErrorInfo without FcmError. */
export function unauthenticated(
  reason: "CREDENTIALS_MISSING" | "ACCESS_TOKEN_EXPIRED" | "ACCESS_TOKEN_TYPE_UNSUPPORTED",
  problem: string,
): ProviderReply {
  const info = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason,
    domain: "googleapis.com",
    metadata: { service: "fcm.googleapis.com", method: "google.firebase.fcm.v1.FcmService.SendMessage" },
  };
  const refused = reply(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", [info], reason);
  return {
    ...refused,
    headers: { ...json, "www-authenticate": 'Bearer realm="https://accounts.google.com/"' },
    problem,
  };
}

/** An error of Google without an FCM code. */
export const googleError = (status: number, problem: string): ProviderReply => ({
  ...reply(status, canonical[status] ?? "UNKNOWN", problem, [], canonical[status] ?? "UNKNOWN"),
  problem,
});
