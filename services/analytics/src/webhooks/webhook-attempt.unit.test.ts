import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import {
  attemptOutcome,
  maxWebhookAttempts,
  newWebhookSecret,
  nextWebhookAttempt,
  webhookSignature,
} from "./webhook-attempt.ts";

test.each([
  [200, "delivered"],
  [204, "delivered"],
  [299, "delivered"],
  [199, "failed"],
  [300, "failed"],
  [302, "failed"],
  [308, "failed"],
  [400, "failed"],
  [404, "failed"],
  [409, "failed"],
  [410, "failed"],
  [411, "failed"],
  [429, "failed"],
  [500, "failed"],
  [503, "failed"],
])("%i: %s", (status, kind) => {
  expect(attemptOutcome({ kind: "answered", status, body: "" }).kind).toBe(kind);
});

test("410 to two attempts in a row means that it is gone", () => {
  const kindAfter = (before: number | undefined, status: number) =>
    attemptOutcome({ kind: "answered", status, body: "" }, before).kind;
  expect([kindAfter(410, 410), kindAfter(undefined, 410), kindAfter(503, 410), kindAfter(410, 503)]).toEqual([
    ...["gone", "failed", "failed", "failed"],
  ]);
});

test("without a response it failed, with the reason", () => {
  expect(attemptOutcome({ kind: "unanswered", problem: "ECONNREFUSED" })).toEqual({
    kind: "failed",
    error: "ECONNREFUSED",
  });
});

const now = new Date("2030-01-01T00:00:00Z");
const minute = 60_000;
const hour = 60 * minute;
const after = (attempts: number, random = 0, retryAfterMs?: number) => {
  const next = nextWebhookAttempt({ attempts, now, random, retryAfterMs });
  return next && next.getTime() - now.getTime();
};

test("the delays are as documented, with a tenth of jitter", () => {
  const delays = [5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];
  expect(delays.map((_, index) => after(index + 1))).toEqual(delays);
  expect(delays.map((_, index) => after(index + 1, 0.5))).toEqual(delays.map((delay) => delay * 1.05));
  expect(after(maxWebhookAttempts)).toBeUndefined();
  expect(maxWebhookAttempts).toBe(8);
});

test.each([
  [1, 60_000, 60_000],
  [2, 1_000, 5 * minute],
  [1, 24 * hour, 10 * hour],
  [8, 60_000, undefined],
])("after attempt %i with Retry-After of %i ms: %s", (attempts, retryAfterMs, expected) => {
  expect(after(attempts, 0, retryAfterMs)).toBe(expected);
});

const message = { id: "msg_1", timestamp: Math.floor(Date.now() / 1_000), body: '{"type":"żółw 🐢"}' };
const headersOf = (signature: string) => ({
  "webhook-id": message.id,
  "webhook-timestamp": String(message.timestamp),
  "webhook-signature": signature,
});

test("the reference library accepts the signature, and none of another message or secret", () => {
  const secret = newWebhookSecret();
  const headers = headersOf(webhookSignature([secret], message));
  expect(new Webhook(secret).verify(message.body, headers)).toEqual({ type: "żółw 🐢" });
  expect(() => new Webhook(secret).verify(`${message.body} `, headers)).toThrow();
  expect(() => new Webhook(secret).verify(message.body, { ...headers, "webhook-id": "msg_2" })).toThrow();
  expect(() => new Webhook(newWebhookSecret()).verify(message.body, headers)).toThrow();
});

test("with two secrets either is accepted, and the newest is first", () => {
  const [newest, oldest] = [newWebhookSecret(), newWebhookSecret()];
  const signature = webhookSignature([newest, oldest], message);
  for (const secret of [newest, oldest])
    expect(() => new Webhook(secret).verify(message.body, headersOf(signature))).not.toThrow();
  expect(signature.split(" ")[0]).toBe(webhookSignature([newest], message));
});

test("secrets are 32 random bytes", () => {
  const secrets = Array.from({ length: 10 }, newWebhookSecret);
  expect(new Set(secrets).size).toBe(10);
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});
