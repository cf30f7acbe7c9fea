import { type ProjectId, userKey, type WebhookId, webhookMessageId } from "@herald/contracts";
import { expect, test } from "vitest";
import { erasePayload, isSubscribed, newWebhookMessage, type ReceivedEvent } from "./webhook-message.ts";

const at = new Date("2030-01-01T00:00:00.000Z");
const projectId: ProjectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const other: ProjectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ad";
const webhookId: WebhookId = "whk_06bq4ghm31tz5d2ns8y7k9w0ac";
const event: ReceivedEvent = {
  projectId,
  id: "e1",
  type: "io.herald.notification.opened.v1",
  at,
  publishedAt: new Date(at.getTime() + 10),
  data: { projectId, unheardOf: [1] },
};
const webhook = { _id: webhookId, projectId, events: null, createdAt: at };

test.each([
  ["all of its project", webhook, true],
  [
    "a type that it asked for",
    { ...webhook, events: ["io.herald.topic.created.v1", "io.herald.notification.opened.v1"] },
    true,
  ],
  ["not a type that it did not ask for", { ...webhook, events: ["io.herald.topic.created.v1"] }, false],
  ["not another project's", { ...webhook, projectId: other }, false],
  ["not what was long before it", { ...webhook, createdAt: new Date(at.getTime() + 61_000) }, false],
  ["what was just before it, as clocks differ", { ...webhook, createdAt: new Date(at.getTime() + 30_000) }, true],
])("it gets %s", (_, listener, expected) => {
  expect(isSubscribed(listener, event)).toBe(expected);
});

test("the message id depends on webhook and event alone", () => {
  const message = newWebhookMessage(webhook, event);
  expect(newWebhookMessage(webhook, { ...event, publishedAt: new Date() })).toEqual(message);
  expect(JSON.parse(message.payload)).toEqual({
    id: "e1",
    type: "io.herald.notification.opened.v1",
    timestamp: "2030-01-01T00:00:00.000Z",
    data: { projectId, unheardOf: [1] },
  });
  const ids = [
    message._id,
    newWebhookMessage(webhook, { ...event, id: "e2" })._id,
    webhookMessageId("whk_06bq4ghm31tz5d2ns8y7k9w0ad", "e1", at),
  ];
  expect(new Set(ids).size).toBe(3);
});

const erase = (value: unknown) => erasePayload(JSON.stringify(value), projectId, userKey(projectId, "ann"));

test("removes the user's id wherever it is, and nothing else", () => {
  const event = { data: { users: ["ann", null, "bob"], failures: [{ userId: "ann", reason: "moved" }], ann: "an" } };
  expect(JSON.parse(erase(event))).toEqual({
    data: { users: [null, null, "bob"], failures: [{ userId: null, reason: "moved" }], ann: "an" },
  });
});

test("a payload without the user stays the same, to the byte", () => {
  const payload = '{ "data": {"users":["bob"],  "n":1.0 } }';
  expect(erasePayload(payload, projectId, userKey(projectId, "ann"))).toBe(payload);
});

test("the same id in another project is another user", () => {
  expect(erasePayload('["ann"]', other, userKey(projectId, "ann"))).toBe('["ann"]');
});
