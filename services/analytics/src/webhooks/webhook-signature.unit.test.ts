import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { newWebhookSecret, webhookSignature } from "./webhook-signature.ts";

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
