import { knownAnswers } from "@herald/simulators";
import fc from "fast-check";
import { expect, test } from "vitest";
import { webPushOutcome } from "./outcome.ts";

const now = new Date("2026-03-01T12:00:00Z");
const origin = "https://push.example";
const outcome = (status: number, body = "", headers: Record<string, string> = {}) =>
  webPushOutcome({ kind: "answered", status, headers, body }, now, origin);

test.each([
  [200, "accepted"],
  [201, "accepted"],
  [202, "accepted"],
  [204, "accepted"],
  [205, "unknown"],
  [301, "rejected endpoint-forbidden"],
  [302, "rejected endpoint-forbidden"],
  [303, "rejected endpoint-forbidden"],
  [307, "rejected endpoint-forbidden"],
  [308, "rejected endpoint-forbidden"],
  [400, "rejected provider-rejected"],
  [401, "rejected topic-mismatch"],
  [403, "rejected topic-mismatch"],
  [404, "unregistered"],
  [406, "deferred"],
  [408, "deferred"],
  [410, "unregistered"],
  [413, "rejected payload-too-large"],
  [429, "deferred"],
  [500, "deferred"],
  [502, "deferred"],
  [503, "deferred"],
])("%i is %s", (status, expected) => {
  const got = outcome(status, "prose");
  expect(got.kind === "rejected" ? `rejected ${got.reason}` : got.kind).toBe(expected);
  if (got.kind !== "accepted") expect(got.providerReason).toBe(`HTTP ${status}`);
});

const page = "<html><body>Blocked</body></html>";
const isPage = { "content-type": "text/html; charset=utf-8" };
const elsewhere = { location: "https://portal.example/login" };
const notTheService = (status: number, more: object) => ({
  kind: "deferred",
  providerReason: expect.stringContaining(`HTTP ${status}`),
  problem: {
    reason: "not-the-provider",
    host: "push.example",
    detail: expect.stringContaining("in the provider's place"),
  },
  ...more,
});

test.each([407, 511])("%i is from something in between: pushes to the server wait", (status) => {
  expect(outcome(status)).toEqual(notTheService(status, { unprocessed: true }));
});

test.each([
  [200, page, {}],
  [200, "", isPage],
  [401, page, {}],
  [403, "", isPage],
  [451, "", {}],
  [302, "", elsewhere],
  [307, page, elsewhere],
  [308, "", { location: "//portal.example/" }],
])("%i with %j and %j is not from the push service, or about the path: this push waits", (status, body, headers) => {
  expect(outcome(status, body, headers)).toEqual(notTheService(status, { unprocessed: true, limit: "device" }));
});

test.each([400, 402, 404, 405, 410, 413, 418])(
  "a page with %i may be about the path: it delays this device alone",
  (status) => {
    expect(outcome(status, page)).toEqual(notTheService(status, { limit: "device" }));
  },
);

test("a redirect on the same host is still refused, a page with an accepting or a failing status changes nothing", () => {
  for (const location of ["/elsewhere", "https://push.example/elsewhere", "https://[", ""])
    expect(outcome(301, "", { location })).toMatchObject({ reason: "endpoint-forbidden" });
  for (const status of [201, 202, 204]) expect(outcome(status, page)).toEqual({ kind: "accepted" });
  for (const status of [429, 406]) expect(outcome(status, page)).toMatchObject({ limit: "sender" });
  for (const status of [500, 502, 503]) expect(outcome(status, page)).toEqual(outcome(status));
});

test("gives Apple's reason, and waits for Retry-After", () => {
  expect(outcome(403, '{"reason":"BadJwtToken"}')).toEqual({
    kind: "rejected",
    reason: "topic-mismatch",
    providerReason: "BadJwtToken",
    tokenMismatch: true,
  });
  expect(outcome(429, "", { "retry-after": "120" })).toMatchObject({ kind: "deferred", retryAfterMs: 120_000 });
  expect([429, 406, 503, 408].map((status) => outcome(status))).toMatchObject([
    { limit: "sender" },
    { limit: "sender" },
    expect.not.objectContaining({ limit: "sender" }),
    expect.not.objectContaining({ limit: "sender" }),
  ]);
  expect(outcome(410)).toEqual({ kind: "unregistered", providerReason: "HTTP 410" });
});

test("an answer of a push service is about the device, unless it limits the sender", () => {
  for (const status of [203, 408, 500, 501, 502, 503, 504, 507, 599])
    expect([status, outcome(status)]).toMatchObject([status, { limit: "device" }]);
  for (const status of [406, 429]) expect([status, outcome(status)]).toMatchObject([status, { limit: "sender" }]);
  const isUnprocessed = (status: number) => (outcome(status) as { unprocessed?: true }).unprocessed === true;
  expect([406, 429, 500, 502, 503, 504, 507].filter(isUnprocessed)).toEqual([406, 429, 503]);
});

test("names the message as the service does, where its name is fit to keep", () => {
  const named = (location: string) => outcome(201, "", { location });
  expect(named("https://push.example/m/abc")).toEqual({ kind: "accepted", providerId: "https://push.example/m/abc" });
  expect(named("/m/abc")).toEqual({ kind: "accepted", providerId: "/m/abc" });
  for (const location of ["", "two words", "line\nbreak", "é", "x".repeat(301)])
    expect(named(location)).toEqual({ kind: "accepted" });
});

const about = (limit: "device" | "sender", unprocessed: boolean) => ({
  kind: "deferred",
  limit,
  ...(unprocessed && { unprocessed }),
});
const outcomesOfReal: Readonly<Record<keyof typeof knownAnswers, object>> = {
  "ntfy-accepted": { kind: "accepted" },
  "ntfy-too-many-requests": about("sender", true),
  "ntfy-daily-quota": about("sender", true),
  "ntfy-no-subscriber": about("device", false),
  "ntfy-forbidden": { kind: "rejected", reason: "topic-mismatch", tokenMismatch: true },
  "ntfy-not-found": { kind: "unregistered" },
  "ntfy-too-large": { kind: "rejected", reason: "payload-too-large" },
  "ntfy-internal-error": about("device", false),
  "autopush-accepted": { kind: "accepted", providerId: knownAnswers["autopush-accepted"].headers.location },
  "autopush-bad-keys": { kind: "rejected", reason: "provider-rejected" },
  "autopush-bad-topic": { kind: "rejected", reason: "provider-rejected" },
  "autopush-other-key": { kind: "rejected", reason: "topic-mismatch", tokenMismatch: true },
  "autopush-no-endpoint": { kind: "unregistered" },
  "autopush-unsubscribed": { kind: "unregistered" },
  "autopush-expired": { kind: "unregistered" },
  "autopush-too-large": { kind: "rejected", reason: "payload-too-large" },
  "autopush-unknown-error": about("device", false),
  "autopush-back-off": { ...about("device", true), retryAfterMs: 120_000 },
  "autopush-behind-nginx": about("device", false),
};

test.each(Object.entries(outcomesOfReal))("knows the real answer %s", (name, expected) => {
  const { status, body, headers } = knownAnswers[name as keyof typeof knownAnswers];
  const got = outcome(status, body, { ...headers });
  expect(got).toMatchObject(expected);
  // Nothing waits for longer than the server asked for, or counts as unprocessed by chance.
  if (!("retry-after" in headers)) expect(got).not.toHaveProperty("retryAfterMs", expect.any(Number));
  if (!("unprocessed" in expected)) expect(got).not.toHaveProperty("unprocessed", true);
});

test("classifies anything, with a reason that is fit to keep", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1_000 }),
      fc.oneof(fc.string(), fc.json()),
      fc.option(fc.string(), { nil: undefined }),
      (status, body, retryAfter) => {
        const got = webPushOutcome(
          { kind: "answered", status, headers: { "retry-after": retryAfter }, body },
          now,
          origin,
        );
        if (got.kind !== "accepted" && !("problem" in got))
          expect(got.providerReason).toMatch(/^[A-Za-z][A-Za-z0-9_ -]{0,63}$/);
        if (got.kind === "unregistered") expect([404, 410]).toContain(status);
      },
    ),
    { numRuns: process.env.HERALD_TEST_LONG ? 10_000 : 1_000 },
  );
});
