import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { ProviderAnswer } from "../outcome.ts";
import { fcmErrors, fcmOutcome } from "./outcome.ts";

const now = new Date("2026-03-01T12:00:00Z");
const origin = "https://fcm.googleapis.com";
const fcmErrorType = "type.googleapis.com/google.firebase.fcm.v1.FcmError";

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): ProviderAnswer => ({
  kind: "answered",
  status,
  headers,
  body: typeof body === "string" ? body : JSON.stringify(body),
});
const failed = (status: number, code: string, extra: readonly object[] = [], message = "") => ({
  error: { code: status, message, status: "ANY", details: [{ "@type": fcmErrorType, errorCode: code }, ...extra] },
});

test("every documented error has its outcome", () => {
  const outcomes = Object.keys(fcmErrors).map((pair) => {
    const [status, code] = pair.split(" ") as [string, string];
    const outcome = fcmOutcome(answer(Number(status), failed(Number(status), code)), now, origin);
    expect(outcome).toMatchObject({ providerReason: code });
    return `${pair}: ${outcome.kind}${outcome.kind === "rejected" ? ` ${outcome.reason}` : ""}`;
  });
  expect(outcomes).toEqual([
    "400 INVALID_ARGUMENT: rejected payload-invalid",
    "401 THIRD_PARTY_AUTH_ERROR: rejected token-kind-mismatch",
    "401 UNAUTHENTICATED: misconfigured",
    "401 ACCESS_TOKEN_EXPIRED: misconfigured",
    "403 SENDER_ID_MISMATCH: rejected topic-mismatch",
    "403 PERMISSION_DENIED: misconfigured",
    "404 UNREGISTERED: unregistered",
    "404 NOT_FOUND: rejected token-invalid",
    "409 ABORTED: deferred",
    "429 QUOTA_EXCEEDED: deferred",
    "429 RESOURCE_EXHAUSTED: deferred",
    "499 CANCELLED: deferred",
    "500 INTERNAL: deferred",
    "503 UNAVAILABLE: deferred",
    "504 DEADLINE_EXCEEDED: deferred",
  ]);
});

test("200 is accepted, with the message's name where there is one", () => {
  const name = "projects/demo/messages/0:1500415314455276%31bd1c9631bd1c96";
  expect(fcmOutcome(answer(200, { name }), now, origin)).toEqual({ kind: "accepted", providerId: name });
  expect(fcmOutcome(answer(200, { name: "projects/a b" }), now, origin)).toEqual({ kind: "accepted" });
});

test.each([
  ...["", "{}", "[]", { name: 5 }, "<html>Sign in</html>"].map((body) => [200, body] as const),
  ...[201, 204, 302, 400, 401, 403, 404, 407, 410, 413, 429, 451, 511].map((status) => [status, "<html>"] as const),
  ...[401, 403, 404, 407].map((status) => [status, ""] as const),
  [403, { message: "Blocked" }] as const,
  [403, { error: "Blocked" }] as const,
])("%i with %j is not from FCM: the push waits", (status, body) => {
  expect(fcmOutcome(answer(status, body, { "retry-after": "86400" }), now, origin)).toEqual({
    kind: "deferred",
    providerReason: expect.stringContaining(
      "is no answer of fcm.googleapis.com. Something answers in the provider's place",
    ),
    problem: {
      reason: "not-the-provider",
      host: "fcm.googleapis.com",
      detail: expect.stringContaining(`HTTP ${status}`),
    },
    unprocessed: true,
  });
});

test("a page of Google's front end with a 5xx is a failure of FCM", () => {
  for (const status of [500, 502, 503])
    expect(fcmOutcome(answer(status, "<html>"), now, origin)).toEqual({
      kind: "deferred",
      providerReason: `HTTP ${status}`,
      ...(status === 503 && { unprocessed: true }),
    });
});

test("a refused credential keeps Google's words, short and printable", () => {
  const words = "Firebase Cloud Messaging API has not been used in project 7 before or it is disabled.";
  const told = (message: unknown) =>
    fcmOutcome(answer(403, { error: { status: "PERMISSION_DENIED", message } }), now, origin);
  expect(told(words)).toEqual({ kind: "misconfigured", providerReason: "PERMISSION_DENIED", detail: words });
  expect(told("\u0007é".repeat(400))).toMatchObject({ detail: "?".repeat(300) });
  expect(told("")).toEqual({ kind: "misconfigured", providerReason: "PERMISSION_DENIED" });
});

describe("INVALID_ARGUMENT", () => {
  const violation = (field: string, description = "") => ({
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    fieldViolations: [{ field, description }],
  });
  it.each([
    ["the token, by its field", failed(400, "INVALID_ARGUMENT", [violation("message.token")]), "token-invalid"],
    ["the installation id", failed(400, "INVALID_ARGUMENT", [violation("message.fid")]), "token-invalid"],
    [
      "the token, by its words",
      failed(400, "INVALID_ARGUMENT", [], "The registration token is not a valid FCM registration token"),
      "token-invalid",
    ],
    ["the size", failed(400, "INVALID_ARGUMENT", [], "Android message is too big"), "payload-too-large"],
    ["nothing that is said", failed(400, "INVALID_ARGUMENT"), "payload-invalid"],
    ["only Google's status", { error: { status: "INVALID_ARGUMENT" } }, "payload-invalid"],
  ])("is about %s: rejected, and a refusal of the token only if it names that", (_, body, reason) => {
    expect(fcmOutcome(answer(400, body), now, origin)).toEqual({
      kind: "rejected",
      reason,
      providerReason: "INVALID_ARGUMENT",
      ...(reason === "token-invalid" && { badToken: true }),
    });
  });
  it.each(["message.data[0].value", "message.apns.live_activity_token"])(
    "names %s as the field of the payload that FCM refuses, not its value",
    (field) => {
      const words = violation(field, `Invalid value at '${field}': secret`);
      expect(fcmOutcome(answer(400, failed(400, "INVALID_ARGUMENT", [words])), now, origin)).toEqual({
        kind: "rejected",
        reason: "payload-invalid",
        providerReason: `INVALID_ARGUMENT ${field}`,
      });
    },
  );
});

test("waits for Retry-After, and a minute for a quota without it", () => {
  const wait = (status: number, code: string, headers: Record<string, string> = {}) =>
    fcmOutcome(answer(status, failed(status, code), headers), now, origin);
  expect(wait(429, "QUOTA_EXCEEDED")).toMatchObject({ kind: "deferred", retryAfterMs: 60_000 });
  expect(wait(429, "QUOTA_EXCEEDED", { "retry-after": "7" })).toMatchObject({ retryAfterMs: 7_000 });
  expect(wait(503, "UNAVAILABLE", { "retry-after": "90" })).toMatchObject({ retryAfterMs: 90_000 });
  expect(wait(503, "UNAVAILABLE")).toMatchObject({ kind: "deferred", retryAfterMs: undefined });
});

test("a quota is the sender's, unless Google names the device; other errors are not a quota", () => {
  const limit = (status: number, body: unknown) => {
    const outcome = fcmOutcome(answer(status, body), now, origin);
    return outcome.kind === "deferred" ? outcome.limit : outcome.kind;
  };
  const quota = (violations: unknown) => ({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations });
  expect(limit(429, failed(429, "QUOTA_EXCEEDED"))).toBe("sender");
  expect(limit(429, failed(429, "QUOTA_EXCEEDED", [], "Device message rate exceeded"))).toBe("device");
  expect(limit(429, failed(429, "QUOTA_EXCEEDED", [quota([{ subject: "device:abc" }])]))).toBe("device");
  expect(
    limit(429, failed(429, "QUOTA_EXCEEDED", [quota([{ subject: "project:p", description: "Per minute" }])])),
  ).toBe("sender");
  expect(limit(429, failed(429, "QUOTA_EXCEEDED", [quota("device"), quota([null, 7])]))).toBe("sender");
  expect(limit(503, failed(503, "UNAVAILABLE"))).toBeUndefined();
});

test("FCM's code is preferred to Google's reason, and that to its status", () => {
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "ACCESS_TOKEN_EXPIRED" };
  expect(fcmOutcome(answer(401, { error: { status: "UNAUTHENTICATED", details: [info] } }), now, origin)).toMatchObject(
    {
      providerReason: "ACCESS_TOKEN_EXPIRED",
    },
  );
  expect(fcmOutcome(answer(401, { error: { status: "UNAUTHENTICATED" } }), now, origin)).toMatchObject({
    providerReason: "UNAUTHENTICATED",
  });
});

test.each([
  ["ApnsError", { statusCode: 403, reason: "BadEnvironmentKeyInToken" }],
  ["WebpushError", { statusCode: 403 }],
])("what %s says through FCM is about the token, with FCM's own code beside it or without", (type, fields) => {
  const details = [{ "@type": `type.googleapis.com/google.firebase.fcm.v1.${type}`, ...fields }];
  const error = { status: "UNAUTHENTICATED", details };
  expect(fcmOutcome(answer(401, { error }), now, origin)).toEqual({
    ...{ kind: "rejected", reason: "token-kind-mismatch", tokenMismatch: true },
    providerReason: "THIRD_PARTY_AUTH_ERROR",
  });
});

test("a device is unregistered only by FCM's own error code, not by another 404", () => {
  const unknown = { error: { status: "NOT_FOUND", message: "Requested entity was not found." } };
  expect(fcmOutcome(answer(404, unknown), now, origin)).toMatchObject({ kind: "rejected", reason: "token-invalid" });
  expect(fcmOutcome(answer(500, failed(500, "UNREGISTERED")), now, origin).kind).toBe("deferred");
  expect(fcmOutcome(answer(410, failed(410, "UNREGISTERED")), now, origin).kind).toBe("rejected");
});

test("is not misled by fields that are no text", () => {
  const trap = { toString: {} };
  const details = [
    { "@type": trap, errorCode: trap },
    { "@type": "google.rpc.BadRequest", fieldViolations: [trap, null] },
  ];
  const error = { code: 400, status: trap, message: trap, details };
  expect(fcmOutcome(answer(400, { error }), now, origin)).toMatchObject({
    kind: "rejected",
    providerReason: "HTTP 400",
  });
});

test("classifies anything, with a reason that is fit to keep", () => {
  const details = fc.anything().map((value) => ({ "@type": fcmErrorType, errorCode: value }));
  const error = fc.record({
    status: fc.anything(),
    message: fc.anything(),
    details: fc.oneof(fc.anything(), fc.array(details)),
  });
  const body = fc.oneof(
    fc.string(),
    fc.json(),
    fc.record({ error, name: fc.anything() }).map((value) => {
      try {
        return JSON.stringify(value);
      } catch {
        return "";
      }
    }),
  );
  fc.assert(
    fc.property(
      fc.oneof(fc.constantFrom(200, 400, 401, 403, 404, 429, 500, 503), fc.integer({ min: 1, max: 999 })),
      fc.option(fc.string(), { nil: undefined }),
      body,
      (status, retryAfter, text) => {
        const outcome = fcmOutcome(
          { kind: "answered", status, headers: { "retry-after": retryAfter }, body: text },
          now,
          origin,
        );
        if (outcome.kind !== "accepted" && !("problem" in outcome))
          expect(outcome.providerReason).toMatch(/^[A-Za-z][A-Za-z0-9_ -]{0,63}$/);
        if (outcome.kind === "misconfigured") expect(outcome.detail ?? "").toMatch(/^[\x20-\x7e]{0,300}$/);
        if (outcome.kind === "unregistered") expect(status).toBe(404);
      },
    ),
    { numRuns: process.env.HERALD_TEST_LONG ? 10_000 : 1_000 },
  );
});
