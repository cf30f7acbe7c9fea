import { newProjectId } from "@herald/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createReceivers, type Posted } from "./receiver.ts";
import { idsOf, signedBy, verified } from "./verify-message.ts";
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

test("an event is posted once, signed as in Standard Webhooks", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const id = await system.topicCreated(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  const [posted] = receiver.posts as [Posted];
  expect(verified(posted, hook)).toEqual({
    id,
    type: "io.herald.topic.created.v1",
    timestamp: expect.stringMatching(/Z$/),
    data: expect.objectContaining({ project_id: hook.projectId, topic: "news" }),
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

test("only subscribed types are posted, and only of the project", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url, { events: ["io.herald.notification.cancelled.v1"] });
  await system.topicCreated(hook.projectId);
  await system.cancelled(newProjectId(system.now()));
  const wanted = await system.cancelled(hook.projectId);
  await eventually(() => expect(receiver.posts).toHaveLength(1));
  expect(idsOf(receiver.posts)).toEqual([wanted]);
  expect(await system.messages(hook)).toHaveLength(1);
});

test("events that share a message are posted one by one", async () => {
  const receiver = await newReceiver();
  const hook = await system.hook(receiver.url);
  const sent = await system.cancelledTogether(hook.projectId, 30);
  await eventually(() => expect(receiver.posts.length).toBeGreaterThanOrEqual(30));
  expect(idsOf(receiver.posts).toSorted()).toEqual(sent.toSorted());
  const [posted] = receiver.posts as [Posted];
  expect(verified(posted, hook)).toEqual({
    id: expect.stringMatching(/^event-/),
    type: "io.herald.notification.cancelled.v1",
    timestamp: expect.stringMatching(/Z$/),
    data: expect.objectContaining({ project_id: hook.projectId }),
  });
});

test("a message is retried by the schedule, then it has failed", async () => {
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
  expect(detail.payload).toMatchObject({ type: "io.herald.topic.created.v1" });
});

test("Retry-After is respected", async () => {
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

test("redirects are not followed, and responses are truncated", async () => {
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

describe("a request that ends after a second", () => {
  beforeAll(() => system.restart({}, { timeoutMs: 1_000 }));

  test("a response with only a status counts", async () => {
    const receiver = await newReceiver();
    receiver.answers((_posted, response) => void response.writeHead(200, { "content-length": "10" }).write("abc"));
    const hook = await system.hook(receiver.url);
    await system.topicCreated(hook.projectId);
    await eventually(async () => expect(await system.messages(hook, "delivered")).toHaveLength(1));
  });

  test("a receiver that fails, hangs and recovers gets every event with a valid signature", async () => {
    const receiver = await newReceiver();
    let mood: "failing" | "hanging" | "well" = "failing";
    receiver.answers((_posted, _response, request) => {
      if (mood === "failing") return 500;
      if (mood === "well") return 200;
      // Hangs until the sender gives up.
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
      expect(hung.some(({ last_error }) => last_error === "no answer within 1 s")).toBe(true);
    });
    mood = "well";
    await eventually(async () => {
      // A message whose request hung more than once waits longer.
      system.forward(10 * minute);
      expect(await system.messages(hook, "delivered")).toHaveLength(6);
    });
    expect(new Set(idsOf(receiver.posts))).toEqual(new Set(sent));
    for (const posted of receiver.posts) expect(signedBy(posted, hook)).toBe(true);
    // A repeat has the same message id.
    expect(new Set(receiver.posts.map(({ headers }) => headers["webhook-id"])).size).toBe(6);
    expect((await system.read(hook)).failing_since).toBeUndefined();
  });
});

/** A poll reads each webhook that has waiting messages; these tests have no retries. */
const pollRarely = () => system.restart({}, { pollIntervalMs: 1_000 });

test("a slow receiver delays no other one", async () => {
  await pollRarely();
  const slow = await newReceiver();
  const quick = await newReceiver();
  slow.answers((_posted, _response, request) => new Promise((resolve) => request.on("close", resolve)));
  const projectId = newProjectId(system.now());
  const slowHook = await system.hook(slow.url, { projectId });
  const quickHook = await system.hook(quick.url, { projectId });
  for (let each = 0; each < 20; each++) await system.topicCreated(projectId);
  await eventually(async () => expect(await system.messages(quickHook, "delivered")).toHaveLength(20));
  expect(await system.messages(slowHook, "delivered")).toEqual([]);
  expect(slow.posts.length).toBeLessThanOrEqual(8);
});

test("receivers that never respond do not block those of another project", { timeout: 120_000 }, async () => {
  await pollRarely();
  const [slow, quick] = [await newReceiver(), await newReceiver()];
  slow.answers((_posted, _response, request) => new Promise((resolve) => request.on("close", resolve)));
  const quiet = newProjectId(system.now());
  const quickHook = await system.hook(quick.url, { projectId: quiet });
  const noisy = Array.from({ length: 4 }, () => newProjectId(system.now()));
  // More than the limit of all requests, if each webhook had its eight.
  for (const projectId of noisy) for (let each = 0; each < 20; each++) await system.hook(slow.url, { projectId });
  for (const projectId of noisy) for (let each = 0; each < 8; each++) await system.topicCreated(projectId);
  await eventually(() => expect(slow.posts.length).toBeGreaterThan(300));
  for (let each = 0; each < 3; each++) await system.topicCreated(quiet);
  await eventually(async () => expect(await system.messages(quickHook, "delivered")).toHaveLength(3));
  expect(slow.posts.length).toBeLessThan(512);
});
