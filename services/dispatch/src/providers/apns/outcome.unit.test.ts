import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { ProviderAnswer } from "../outcome.ts";
import { apnsOutcome, apnsReasons } from "./outcome.ts";

const now = new Date("2026-03-01T12:00:00Z");
const origin = "https://api.push.apple.com";
const answer = (status: number, body: unknown = "", headers: Record<string, string> = {}): ProviderAnswer => ({
  kind: "answered",
  status,
  headers,
  body: typeof body === "string" ? body : JSON.stringify(body),
});

test("every documented answer has its outcome", () => {
  const outcomes = Object.entries(apnsReasons).flatMap(([status, reasons]) =>
    Object.keys(reasons).map((reason) => {
      const outcome = apnsOutcome(answer(Number(status), { reason }), now, origin);
      expect(outcome).toMatchObject({ providerReason: reason });
      return `${status} ${reason}: ${outcome.kind}${outcome.kind === "rejected" ? ` ${outcome.reason}` : ""}`;
    }),
  );
  expect(outcomes).toEqual([
    "400 BadCollapseId: rejected provider-rejected",
    "400 BadDeviceToken: rejected token-invalid",
    "400 BadExpirationDate: rejected provider-rejected",
    "400 BadMessageId: rejected provider-rejected",
    "400 BadPriority: rejected provider-rejected",
    "400 BadTopic: misconfigured",
    "400 DeviceTokenNotForTopic: rejected topic-mismatch",
    "400 DuplicateHeaders: rejected provider-rejected",
    "400 IdleTimeout: deferred",
    "400 InvalidPushType: rejected provider-rejected",
    "400 MissingDeviceToken: rejected token-invalid",
    "400 MissingTopic: misconfigured",
    "400 PayloadEmpty: rejected payload-invalid",
    "400 TopicDisallowed: misconfigured",
    "403 BadCertificate: misconfigured",
    "403 BadCertificateEnvironment: misconfigured",
    "403 BadEnvironmentKeyIdInToken: misconfigured",
    "403 BadEnvironmentKeyInToken: misconfigured",
    "403 ExpiredProviderToken: misconfigured",
    "403 Forbidden: misconfigured",
    "403 InvalidProviderToken: misconfigured",
    "403 MissingProviderToken: misconfigured",
    "403 UnrelatedKeyIdInToken: misconfigured",
    "404 BadPath: rejected token-invalid",
    "405 MethodNotAllowed: rejected provider-rejected",
    "410 ExpiredToken: unregistered",
    "410 Unregistered: unregistered",
    "413 PayloadTooLarge: rejected payload-too-large",
    "429 TooManyProviderTokenUpdates: deferred",
    "429 TooManyRequests: deferred",
    "500 InternalServerError: deferred",
    "503 ServiceUnavailable: deferred",
    "503 Shutdown: deferred",
  ]);
});

test("200 with Apple's header is accepted, whatever its body is", () => {
  const headers = { "apns-id": "1" };
  expect(apnsOutcome(answer(200, "", headers), now, origin)).toEqual({ kind: "accepted" });
  expect(apnsOutcome(answer(200, { reason: "Unregistered" }, headers), now, origin)).toEqual({ kind: "accepted" });
});

const page = "<!DOCTYPE html><title>Blocked</title>";
test.each([
  ...[200, 201, 204, 302, 400, 401, 403, 404, 407, 410, 413, 429, 451, 502, 511].map(
    (status) => [status, page] as const,
  ),
  ...[200, 401, 403, 404, 407, 410, 413, 429, 511].map((status) => [status, ""] as const),
  [403, { message: "Blocked" }] as const,
  [200, { reason: "Unregistered" }] as const,
])("%i with %j is not from Apple: the push waits", (status, body) => {
  expect(apnsOutcome(answer(status, body, { "retry-after": "86400" }), now, origin)).toEqual({
    kind: "deferred",
    providerReason: expect.stringContaining(
      "is no answer of api.push.apple.com. Something answers in the provider's place",
    ),
    problem: {
      reason: "not-the-provider",
      host: "api.push.apple.com",
      detail: expect.stringContaining(`HTTP ${status}`),
    },
    unprocessed: true,
  });
});

test("a 5xx that lost its body is a failure of Apple", () => {
  for (const status of [500, 503])
    expect(apnsOutcome(answer(status), now, origin)).toMatchObject({
      kind: "deferred",
      providerReason: `HTTP ${status}`,
    });
});

describe("410", () => {
  const at = (body: unknown) => apnsOutcome(answer(410, body), now, origin);
  it("carries Apple's time", () => {
    expect(at({ reason: "Unregistered", timestamp: 1_700_000_000_123 })).toEqual({
      kind: "unregistered",
      at: new Date(1_700_000_000_123),
      providerReason: "Unregistered",
    });
    expect(at({ reason: "Unregistered", timestamp: now.getTime() })).toMatchObject({ at: now });
  });
  it.each([undefined, null, "1700000000123", 1.5, -1, 0, Number.MAX_SAFE_INTEGER, now.getTime() + 1, {}])(
    "has no time when it says %s",
    (timestamp) => {
      expect(at({ reason: "ExpiredToken", timestamp })).toEqual({
        kind: "unregistered",
        at: undefined,
        providerReason: "ExpiredToken",
      });
    },
  );
  it("is unregistered also with a reason that Apple never gave", () => {
    expect(at({ reason: "Novelty" })).toEqual({ kind: "unregistered", at: undefined, providerReason: "Novelty" });
  });
});

test("waits for Retry-After, and a minute for a token that changed too often", () => {
  const wait = (status: number, reason: string, headers: Record<string, string> = {}) =>
    apnsOutcome(answer(status, { reason }, headers), now, origin);
  expect(wait(429, "TooManyRequests", { "retry-after": "30" })).toMatchObject({ retryAfterMs: 30_000 });
  expect(wait(503, "Shutdown", { "retry-after": "Sun, 01 Mar 2026 12:02:00 GMT" })).toMatchObject({
    retryAfterMs: 120_000,
  });
  expect(wait(429, "TooManyRequests")).toMatchObject({ kind: "deferred", retryAfterMs: undefined });
  expect(wait(429, "TooManyProviderTokenUpdates")).toMatchObject({ retryAfterMs: 60_000, limit: "sender" });
  expect(wait(429, "TooManyProviderTokenUpdates", { "retry-after": "5" })).toMatchObject({ retryAfterMs: 5_000 });
});

test.each([
  [400, "rejected"],
  [401, "misconfigured"],
  [403, "misconfigured"],
  [404, "rejected"],
  [408, "deferred"],
  [413, "rejected"],
  [418, "rejected"],
  [421, "deferred"],
  [425, "deferred"],
  [429, "deferred"],
  [500, "deferred"],
  [502, "deferred"],
  [599, "deferred"],
  [302, "deferred"],
  [204, "unknown"],
  [100, "unknown"],
  [600, "unknown"],
  [999, "unknown"],
])("%i with a reason that Apple never gave is %s", (status, kind) => {
  expect(apnsOutcome(answer(status, { reason: "Novelty" }), now, origin)).toMatchObject({
    kind,
    providerReason: "Novelty",
  });
  // A known reason with another status is not in the table either.
  expect(apnsOutcome(answer(status, { reason: "Unregistered" }), now, origin).kind).toBe(kind);
});

test("classifies anything, with a reason that is fit to keep", () => {
  const kinds = ["accepted", "unregistered", "rejected", "misconfigured", "deferred", "unknown"];
  const body = fc.oneof(
    fc.string(),
    fc.json(),
    fc.record({ reason: fc.anything(), timestamp: fc.anything() }).map((value) => {
      try {
        return JSON.stringify(value) ?? "";
      } catch {
        return "";
      }
    }),
  );
  fc.assert(
    fc.property(
      fc.oneof(fc.constantFrom(200, 400, 403, 410, 413, 429, 500, 503), fc.integer({ min: 1, max: 999 })),
      fc.dictionary(fc.string(), fc.string()),
      fc.option(fc.string(), { nil: undefined }),
      body,
      (status, headers, retryAfter, text) => {
        const outcome = apnsOutcome(
          { kind: "answered", status, headers: { ...headers, "retry-after": retryAfter }, body: text },
          now,
          origin,
        );
        expect(kinds).toContain(outcome.kind);
        if (outcome.kind !== "accepted" && !("problem" in outcome))
          expect(outcome.providerReason).toMatch(/^[A-Za-z][A-Za-z0-9_ -]{0,63}$/);
        if (outcome.kind === "deferred" && outcome.retryAfterMs !== undefined) {
          expect(outcome.retryAfterMs).toBeGreaterThanOrEqual(0);
          expect(outcome.retryAfterMs).toBeLessThanOrEqual(86_400_000);
        }
        if (outcome.kind === "unregistered" && outcome.at)
          expect(outcome.at.getTime()).toBeLessThanOrEqual(now.getTime());
      },
    ),
    { numRuns: process.env.HERALD_TEST_LONG ? 10_000 : 1_000 },
  );
});
