import { publishEvents, sendRequest } from "@herald/bus";
import { newWebhookMessageId, webhookMessageRequests, webhookRequests } from "@herald/contracts";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { createReceivers, type Posted } from "./receiver.ts";
import { idsOf, signedBy } from "./verify-message.ts";
import { eventually, startWebhookTest, type WebhookTest } from "./webhook-fixture.ts";

// Receivers hang and recover, one after the other.
vi.setConfig({ testTimeout: 90_000 });
let system: WebhookTest;
const { newReceiver, stopReceivers } = createReceivers();
beforeAll(async () => {
  system = await startWebhookTest();
});
afterEach(async () => {
  system.present();
  await stopReceivers();
});
afterAll(() => system.stop());

const minute = 60_000;
const hour = 60 * minute;

test("during a rotation both secrets sign; after a day the new one alone", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const post = async () => {
    const before = receiver.posts.length;
    await system.topicCreated(hook.projectId);
    return eventually(() => {
      const posted = receiver.posts[before];
      if (posted === undefined) throw new Error("nothing yet");
      return posted;
    });
  };
  const named = { projectId: hook.projectId, webhookId: hook.id };
  const rotate = (rotationId: string) => sendRequest(system.bus, webhookRequests.rotate, { ...named, rotationId });
  const unseen = await rotate("first");
  // The reply was lost: the repeat must not invalidate the secret that the receiver has.
  const first = await rotate("first");
  expect(first.webhook.previous_secret_until).toBeDefined();
  const both = await post();
  expect(both.headers["webhook-signature"]?.split(" ")).toHaveLength(2);
  expect([signedBy(both, hook), signedBy(both, unseen), signedBy(both, first)]).toEqual([true, false, true]);

  // At most two secrets sign: the secret before the previous one no longer does.
  const second = await rotate("second");
  const next = await post();
  expect([signedBy(next, hook), signedBy(next, first), signedBy(next, second)]).toEqual([false, true, true]);

  system.forward(24 * hour + minute);
  const late = await post();
  expect([signedBy(late, first), signedBy(late, second)]).toEqual([false, true]);
  expect(await system.read(hook)).not.toHaveProperty("previous_secret_until");
  const stored = await system.database.client.db(system.database.name).collection("webhooks").find().toArray();
  for (const { secret } of [hook, unseen, first, second])
    expect(JSON.stringify(stored)).not.toContain(secret.slice("whsec_".length));
});

test("five days without a success disable it, with an event, and failed messages can be recovered", async () => {
  const receiver = await newReceiver();
  const other = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url, { events: ["io.herald.topic.created.v1"] });
  await system.hook(other.url, { projectId: hook.projectId, events: ["io.herald.webhook.disabled.v1"] });
  const since = system.now().toISOString();
  const first = await system.topicCreated(hook.projectId);
  await eventually(async () => expect((await system.read(hook)).failing_since).toBeDefined());
  system.forward(5 * 24 * hour - minute);
  await eventually(async () => expect((await system.messages(hook))[0]?.attempt_count).toBe(2));
  expect((await system.read(hook)).enabled).toBe(true);

  system.forward(6 * minute);
  await eventually(async () =>
    expect(await system.read(hook)).toMatchObject({ enabled: false, disabled_reason: "failing" }),
  );
  await eventually(() => expect(other.posts).toHaveLength(1));
  expect(JSON.parse(other.posts[0]?.body ?? "")).toMatchObject({
    type: "io.herald.webhook.disabled.v1",
    data: { project_id: hook.projectId, webhook_id: hook.id, reason: "failing", failing_since: expect.any(String) },
  });
  // Events that happen meanwhile are stored, but not sent.
  const second = await system.topicCreated(hook.projectId);
  await eventually(async () => expect(await system.messages(hook, "failed")).toHaveLength(2));
  const seen = receiver.posts.length;
  const recover = () =>
    sendRequest(system.bus, webhookRequests.recover, { projectId: hook.projectId, webhookId: hook.id, since });
  await expect(recover()).rejects.toMatchObject({ code: "webhook-disabled" });

  receiver.answers(200);
  const change = { projectId: hook.projectId, webhookId: hook.id, change: { enabled: true } };
  expect(await sendRequest(system.bus, webhookRequests.change, change)).toMatchObject({ enabled: true });
  expect(await system.read(hook)).not.toHaveProperty("failing_since");
  expect(await recover()).toEqual({ messages: 2, more: false });
  await eventually(async () => expect(await system.messages(hook, "delivered")).toHaveLength(2));
  expect(new Set(idsOf(receiver.posts.slice(seen)))).toEqual(new Set([first, second]));
  expect(await recover()).toEqual({ messages: 0, more: false });
});

test("one 410 is a failure like others, and a second in a row disables it", async () => {
  const receiver = await newReceiver();
  receiver.answers(410);
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(async () =>
    expect(await system.read(hook)).toMatchObject({ enabled: false, disabled_reason: "gone" }),
  );
  expect((await system.messages(hook, "failed"))[0]).toMatchObject({ attempt_count: 2 });
});

test("delivered and failed messages can be sent again", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  const [message] = await eventually(async () => {
    const all = await system.messages(hook, "delivered");
    expect(all).toHaveLength(1);
    return all;
  });
  const again = { projectId: hook.projectId, webhookId: hook.id, messageId: message?.id ?? "msg_" };
  expect(await sendRequest(system.bus, webhookMessageRequests.resend, again)).toMatchObject({ status: "waiting" });
  await eventually(async () =>
    expect(await system.messages(hook)).toEqual([expect.objectContaining({ status: "delivered", attempt_count: 2 })]),
  );
  const [one, two] = receiver.posts as [Posted, Posted];
  expect(two.body).toBe(one.body);
  expect(two.headers["webhook-id"]).toBe(one.headers["webhook-id"]);
});

test("a ping is tried once, and its failure does not count", async () => {
  const receiver = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url);
  const ping = { projectId: hook.projectId, webhookId: hook.id, messageId: newWebhookMessageId(system.now()) };
  await sendRequest(system.bus, webhookRequests.ping, ping);
  await sendRequest(system.bus, webhookRequests.ping, ping);
  await eventually(async () => expect(await system.messages(hook, "failed")).toHaveLength(1));
  expect(receiver.posts).toHaveLength(1);
  expect(JSON.parse(receiver.posts[0]?.body ?? "")).toMatchObject({
    type: "io.herald.webhook.ping.v1",
    data: { webhook_id: hook.id },
  });
  expect(await system.read(hook)).not.toHaveProperty("failing_since");
});

test("an event that is delivered again, also to another process, makes no second message", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const id = await system.cancelled(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  await system.restart();
  // The stream does not know the message of both as a repeat.
  const detail = JSON.parse(receiver.posts[0]?.body ?? "");
  const event = {
    id,
    event: "NotificationCancelledV1",
    subject: "x",
    at: new Date(detail.timestamp),
    data: detail.data,
  } as const;
  const marker = "another";
  await publishEvents(system.bus, [event, { ...event, id: marker }]);
  await eventually(() => expect(idsOf(receiver.posts)).toContain(marker));
  expect(idsOf(receiver.posts)).toEqual([id, marker]);
});

test("deleting a webhook deletes its messages", async () => {
  const receiver = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts.length).toBeGreaterThan(0));
  await sendRequest(system.bus, webhookRequests.delete, { projectId: hook.projectId, webhookId: hook.id });
  const rows = system.database.client.db(system.database.name).collection("webhookMessages");
  await eventually(async () => expect(await rows.countDocuments({ webhookId: hook.id })).toBe(0));
  const page = { by: "page", page: 1, perPage: 20 } as const;
  expect((await sendRequest(system.bus, webhookRequests.list, { projectId: hook.projectId, page })).data).toEqual([]);
});

test("deleting a project deletes its webhooks", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  await system.publish("ProjectDeletedV1", { project_id: hook.projectId, at: system.now().toISOString() });
  await eventually(() => expect(system.read(hook)).rejects.toMatchObject({ code: "webhook-not-found" }));
  const rows = system.database.client.db(system.database.name).collection("webhookMessages");
  await eventually(async () => expect(await rows.countDocuments({ projectId: hook.projectId })).toBe(0));
});
