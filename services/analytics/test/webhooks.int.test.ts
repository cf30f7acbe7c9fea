import { ask, publishEvent } from "@herald/bus";
import {
  ChangeWebhookQuestion,
  DeleteWebhook,
  ListWebhooks,
  newProjectId,
  newWebhookMessageId,
  PingWebhook,
  RecoverWebhookQuestion,
  ResendWebhookMessage,
  RotateWebhookSecret,
} from "@herald/contracts";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { type Posted, type Receiver, startReceiver } from "./receiver.ts";
import { eventually, type Hook, startWebhookTest, type WebhookTest } from "./webhook-fixture.ts";

// Receivers hang and come back, one after the other.
vi.setConfig({ testTimeout: 90_000 });
let system: WebhookTest;
const receivers: Receiver[] = [];
beforeAll(async () => {
  system = await startWebhookTest();
});
afterEach(async () => {
  system.present();
  for (const receiver of receivers.splice(0)) await receiver.stop();
});
afterAll(() => system.stop());

const newReceiver = async () => {
  const receiver = await startReceiver();
  receivers.push(receiver);
  return receiver;
};
const minute = 60_000;
const hour = 60 * minute;

/** As a receiver does it, with the reference library. */
const verified = ({ body, headers }: Posted, { secret }: Pick<Hook, "secret">) =>
  new Webhook(secret).verify(body, headers) as { id: string; type: string; timestamp: string; data: unknown };
/** The same, at whatever time the clock of the test has. */
const signedBy = ({ body, headers }: Posted, { secret }: Pick<Hook, "secret">): boolean => {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  const expected = new Webhook(secret).sign(headers["webhook-id"] ?? "", at, body);
  return (headers["webhook-signature"] ?? "").split(" ").includes(expected);
};
const idsOf = (posts: readonly Posted[]) => posts.map(({ body }) => JSON.parse(body).id as string);

test("an event is posted once, signed as Standard Webhooks has it", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const id = await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  const [posted] = receiver.posts as [Posted];
  expect(verified(posted, hook)).toEqual({
    id,
    type: "topic.created",
    timestamp: expect.stringMatching(/Z$/),
    data: expect.objectContaining({ projectId: hook.projectId, topic: "news" }),
  });
  expect(posted.headers).toMatchObject({
    "content-type": "application/json",
    "user-agent": "Herald-Webhooks/1",
    "webhook-id": expect.stringMatching(/^msg_/),
  });
  expect(() => verified({ ...posted, body: posted.body.replace("news", "olds") }, hook)).toThrow();
  await eventually(async () => {
    const [message] = await system.messages(hook);
    expect(message).toMatchObject({ event_id: id, status: "delivered", attempt_count: 1 });
    expect(message?.id).toBe(posted.headers["webhook-id"]);
  });
});

test("only the types that were asked for are posted, and only of the project", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url, { events: ["notification.cancelled"] });
  await system.topicCreated(hook.projectId);
  await system.cancelled(newProjectId(system.now()));
  const wanted = await system.cancelled(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  expect(idsOf(receiver.posts)).toEqual([wanted]);
  expect(await system.messages(hook)).toHaveLength(1);
});

test("a receiver that fails, hangs and recovers sees every event, each with a valid signature", async () => {
  const receiver = await newReceiver();
  let mood: "failing" | "hanging" | "well" = "failing";
  receiver.answers((_posted, _response, request) => {
    if (mood === "failing") return 500;
    if (mood === "well") return 200;
    // Until the sender gives up.
    return new Promise((resolve) => request.on("close", resolve));
  });
  const hook = await system.hook(receiver.url);
  const sent: string[] = [];
  for (let each = 0; each < 6; each++) sent.push(await system.topicCreated(hook.projectId));
  await eventually(async () => {
    const all = await system.messages(hook, "waiting");
    expect(all).toHaveLength(6);
    for (const { attempt_count } of all) expect(attempt_count).toBeGreaterThan(0);
    expect(all.some(({ last_error }) => last_error?.includes("it answered 500"))).toBe(true);
  });
  mood = "hanging";
  system.forward(10_000);
  await eventually(async () => {
    const hung = await system.messages(hook, "waiting");
    expect(hung.some(({ last_error }) => last_error === "no answer within 5 s")).toBe(true);
  });
  mood = "well";
  await eventually(async () => {
    // One that hung more than once waits longer.
    system.forward(10 * minute);
    expect(await system.messages(hook, "delivered")).toHaveLength(6);
  });
  expect(new Set(idsOf(receiver.posts))).toEqual(new Set(sent));
  for (const posted of receiver.posts) expect(signedBy(posted, hook)).toBe(true);
  // A repeat is the same message, so that it can be told from a new one.
  expect(new Set(receiver.posts.map(({ headers }) => headers["webhook-id"])).size).toBe(6);
  expect((await system.read(hook)).failing_since).toBeUndefined();
});

test("a message is tried at the times of the schedule, then it has failed", async () => {
  const receiver = await newReceiver();
  receiver.answers(503);
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  const delays = [5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];
  for (const [attempt, delay] of delays.entries()) {
    const waiting = await eventually(async () => {
      const [message] = await system.messages(hook, "waiting");
      expect(message?.attempt_count).toBe(attempt + 1);
      return message;
    });
    const left = Date.parse(waiting?.next_attempt_at ?? "") - system.now().getTime();
    expect(left).toBeLessThanOrEqual(delay);
    expect(receiver.posts).toHaveLength(attempt + 1);
    system.forward(left + 1);
  }
  const [failed] = await eventually(async () => {
    const all = await system.messages(hook, "failed");
    expect(all).toHaveLength(1);
    return all;
  });
  expect(failed).toMatchObject({
    attempt_count: 8,
    last_error: "it answered 503; a status from 200 to 299 is accepted",
  });
  expect(failed).not.toHaveProperty("next_attempt_at");
  const detail = await system.message(hook, failed?.id ?? "msg_");
  expect(detail.attempts).toHaveLength(8);
  expect(detail.attempts[0]).toMatchObject({ status: 503, duration_ms: expect.any(Number) });
  expect(detail.payload).toMatchObject({ type: "topic.created" });
});

test("Retry-After is waited out", async () => {
  const receiver = await newReceiver();
  receiver.answers((_posted, response) => void response.writeHead(429, { "retry-after": "3600" }).end("slow down"));
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  const message = await eventually(async () => {
    const [first] = await system.messages(hook, "waiting");
    expect(first?.attempt_count).toBe(1);
    return first;
  });
  expect(Date.parse(message?.next_attempt_at ?? "") - system.now().getTime()).toBeGreaterThan(55 * minute);
  expect((await system.message(hook, message?.id ?? "msg_")).attempts[0]).toMatchObject({ response: "slow down" });
});

test("redirects are not followed, and what an answer says is cut", async () => {
  const receiver = await newReceiver();
  const inside = await newReceiver();
  receiver.answers(
    (_posted, response) => void response.writeHead(307, { location: inside.url }).end("x\0".repeat(200_000)),
  );
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  const [message] = await eventually(async () => {
    const all = await system.messages(hook, "waiting");
    expect(all[0]?.attempt_count).toBe(1);
    return all;
  });
  const { attempts } = await system.message(hook, message?.id ?? "msg_");
  expect(attempts[0]).toMatchObject({ status: 307, error: expect.stringContaining("redirects are not followed") });
  expect(attempts[0]?.response?.length).toBeLessThanOrEqual(1_024);
  expect(attempts[0]?.response).not.toContain("\0");
  expect(inside.connections()).toBe(0);
});

test("an answer of which only the status comes is an answer", async () => {
  const receiver = await newReceiver();
  receiver.answers((_posted, response) => void response.writeHead(200, { "content-length": "10" }).write("abc"));
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(async () => expect(await system.messages(hook, "delivered")).toHaveLength(1));
});

test("a slow receiver holds up nobody else", async () => {
  const slow = await newReceiver();
  const quick = await newReceiver();
  slow.answers((_posted, _response, request) => new Promise((resolve) => request.on("close", resolve)));
  const projectId = newProjectId(system.now());
  const slowHook = await system.hook(slow.url, { projectId });
  const quickHook = await system.hook(quick.url, { projectId });
  for (let each = 0; each < 40; each++) await system.topicCreated(projectId);
  await eventually(async () => expect(await system.messages(quickHook, "delivered")).toHaveLength(40));
  expect(await system.messages(slowHook, "delivered")).toEqual([]);
  expect(slow.posts.length).toBeLessThanOrEqual(16);
});

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
  const rotate = (rotationId: string) => ask(system.bus, RotateWebhookSecret, { ...named, rotationId });
  const unseen = await rotate("first");
  // Its answer was lost: the repeat must not end the secret that the receiver has.
  const first = await rotate("first");
  expect(first.webhook.previous_secret_until).toBeDefined();
  const both = await post();
  expect(both.headers["webhook-signature"]?.split(" ")).toHaveLength(2);
  expect([signedBy(both, hook), signedBy(both, unseen), signedBy(both, first)]).toEqual([true, false, true]);

  // Two at most: the one before the last is out.
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

test("five days without a success disable it, with an event, and what failed can be recovered", async () => {
  const receiver = await newReceiver();
  const other = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url, { events: ["topic.created"] });
  await system.hook(other.url, { projectId: hook.projectId, events: ["webhook.disabled"] });
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
    type: "webhook.disabled",
    data: { projectId: hook.projectId, webhookId: hook.id, reason: "failing", failingSince: expect.any(String) },
  });
  // What happens meanwhile is kept, and nothing is sent.
  const second = await system.topicCreated(hook.projectId);
  await eventually(async () => expect(await system.messages(hook, "failed")).toHaveLength(2));
  const seen = receiver.posts.length;
  const recover = () =>
    ask(system.bus, RecoverWebhookQuestion, { projectId: hook.projectId, webhookId: hook.id, since });
  await expect(recover()).rejects.toMatchObject({ code: "webhook-disabled" });

  receiver.answers(200);
  const change = { projectId: hook.projectId, webhookId: hook.id, change: { enabled: true } };
  expect(await ask(system.bus, ChangeWebhookQuestion, change)).toMatchObject({ enabled: true });
  expect(await system.read(hook)).not.toHaveProperty("failing_since");
  expect(await recover()).toEqual({ messages: 2, more: false });
  await eventually(async () => expect(await system.messages(hook, "delivered")).toHaveLength(2));
  expect(new Set(idsOf(receiver.posts.slice(seen)))).toEqual(new Set([first, second]));
  expect(await recover()).toEqual({ messages: 0, more: false });
});

test("410 disables it at once", async () => {
  const receiver = await newReceiver();
  receiver.answers(410);
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(async () =>
    expect(await system.read(hook)).toMatchObject({ enabled: false, disabled_reason: "gone" }),
  );
  expect((await system.messages(hook, "failed"))[0]).toMatchObject({ attempt_count: 1 });
});

test("what was delivered or failed can be sent again", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  const [message] = await eventually(async () => {
    const all = await system.messages(hook, "delivered");
    expect(all).toHaveLength(1);
    return all;
  });
  const again = { projectId: hook.projectId, webhookId: hook.id, messageId: message?.id ?? "msg_" };
  expect(await ask(system.bus, ResendWebhookMessage, again)).toMatchObject({ status: "waiting" });
  await eventually(async () =>
    expect(await system.messages(hook)).toEqual([expect.objectContaining({ status: "delivered", attempt_count: 2 })]),
  );
  const [one, two] = receiver.posts as [Posted, Posted];
  expect(two.body).toBe(one.body);
  expect(two.headers["webhook-id"]).toBe(one.headers["webhook-id"]);
});

test("a test message is tried once, and says nothing about the days before", async () => {
  const receiver = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url);
  const ping = { projectId: hook.projectId, webhookId: hook.id, messageId: newWebhookMessageId(system.now()) };
  await ask(system.bus, PingWebhook, ping);
  await ask(system.bus, PingWebhook, ping);
  await eventually(async () => expect(await system.messages(hook, "failed")).toHaveLength(1));
  expect(receiver.posts).toHaveLength(1);
  expect(JSON.parse(receiver.posts[0]?.body ?? "")).toMatchObject({
    type: "webhook.ping",
    data: { webhookId: hook.id },
  });
  expect(await system.read(hook)).not.toHaveProperty("failing_since");
});

test("an event that comes again, also to another process, is no second message", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const id = await system.topicCreated(hook.projectId, "news", "the-same");
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  await system.restart();
  // A deliberate replay, under a message id of its own.
  const detail = JSON.parse(receiver.posts[0]?.body ?? "");
  const event = {
    id,
    event: "TopicCreatedV1",
    subject: "x",
    at: new Date(detail.timestamp),
    data: detail.data,
  } as const;
  await publishEvent(system.bus, event, { replay: "again" });
  const marker = await system.topicCreated(hook.projectId, "later");
  await eventually(() => expect(idsOf(receiver.posts)).toContain(marker));
  expect(idsOf(receiver.posts)).toEqual([id, marker]);
});

test("a webhook that is deleted takes its messages with it", async () => {
  const receiver = await newReceiver();
  receiver.answers(500);
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts.length).toBeGreaterThan(0));
  await ask(system.bus, DeleteWebhook, { projectId: hook.projectId, webhookId: hook.id });
  const rows = system.database.client.db(system.database.name).collection("webhookMessages");
  await eventually(async () => expect(await rows.countDocuments({ webhookId: hook.id })).toBe(0));
  const page = { by: "page", page: 1, perPage: 20 } as const;
  expect((await ask(system.bus, ListWebhooks, { projectId: hook.projectId, page })).data).toEqual([]);
});

test("a project that is deleted takes its webhooks with it", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  await system.publish("ProjectDeletedV1", { projectId: hook.projectId, at: system.now().toISOString() });
  await eventually(() => expect(system.read(hook)).rejects.toMatchObject({ code: "webhook-not-found" }));
  const rows = system.database.client.db(system.database.name).collection("webhookMessages");
  await eventually(async () => expect(await rows.countDocuments({ projectId: hook.projectId })).toBe(0));
});
