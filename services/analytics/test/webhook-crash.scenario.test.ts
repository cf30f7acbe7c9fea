import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeBus, connectBus, ensureStreams, publishEvent } from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import { newProjectId, newTopicId, newWebhookId, type OutboxEvent } from "@herald/contracts";
import { parseMasterKeys } from "@herald/kit";
import { eventually, freshDatabase, startBroker } from "@herald/testing";
import { Webhook } from "standardwebhooks";
import { afterAll, expect, test } from "vitest";
import { newWebhookSecret } from "../src/webhooks/webhook-attempt.ts";
import { createWebhookMessageStore } from "../src/webhooks/webhook-message-store.ts";
import { createWebhookStore } from "../src/webhooks/webhook-store.ts";
import { environmentOf, log, masterKeys } from "./analytics-fixture.ts";
import { startReceiver } from "./receiver.ts";

const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** Compiling is half the cost of starting a process. */
const loading = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };
/** Events are published in bursts, and analytics is killed in the middle of each. */
const bursts = 3;
const burst = 60;

test("killed repeatedly while events arrive, analytics loses none and sends no others", {
  timeout: 240_000,
}, async () => {
  const [broker, database, receiver] = await Promise.all([
    startBroker(),
    freshDatabase({ service: "analytics" }),
    startReceiver(),
  ]);
  stops.push(broker.stop, database.drop, receiver.stop);
  const bus = await connectBus({ url: broker.url, name: "test", inboxPrefix: busUsers.gateway.inboxPrefix, log });
  stops.push(() => closeBus(bus));
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });

  const parsed = parseMasterKeys(masterKeys);
  if ("problem" in parsed) throw new Error(parsed.problem);
  const db = database.client.db(database.name);
  const webhooks = createWebhookStore(db, parsed.keys);
  const messages = createWebhookMessageStore(db);
  for (const { ensureIndexes } of [webhooks, messages]) await ensureIndexes();
  const now = new Date();
  const projectId = newProjectId(now);
  const webhookId = newWebhookId(now);
  const secret = newWebhookSecret();
  await webhooks.create(projectId, webhookId, { url: receiver.url, events: null }, secret, now);

  const environment = { ...loading, ...environmentOf(broker, database.url, database) };
  let child: ChildProcess;
  const begin = () => {
    const main = new URL("../src/main.ts", import.meta.url).pathname;
    child = spawn(process.execPath, ["--conditions=@herald/source", main], { env: environment, stdio: "ignore" });
  };
  const kill = async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  begin();
  stops.push(kill);

  const ids: string[] = [];
  for (let round = 0; round < bursts; round++) {
    const seen = receiver.posts.length;
    for (let each = 0; each < burst; each++) {
      const id = `event-${ids.length}`;
      ids.push(id);
      const data = { project_id: projectId, topic_id: newTopicId(now), topic: id, at: now.toISOString() };
      const event: OutboxEvent<"TopicCreatedV1"> = { id, event: "TopicCreatedV1", subject: id, at: new Date(), data };
      await publishEvent(bus, event);
    }
    // Analytics is at work: some events are posted, some are stored, some are only read.
    await eventually(() => expect(receiver.posts.length).toBeGreaterThan(seen), { timeoutMs: 60_000 });
    await kill();
    begin();
  }
  await eventually(
    async () => {
      const seen = new Set(receiver.posts.map(({ body }) => JSON.parse(body).id));
      expect(ids.filter((id) => !seen.has(id))).toEqual([]);
    },
    { timeoutMs: 120_000 },
  );
  expect(await db.collection("webhookMessages").countDocuments({ webhookId })).toBe(ids.length);
  // Requests in progress at a kill came twice, with the same message id.
  expect(new Set(receiver.posts.map(({ headers }) => headers["webhook-id"])).size).toBe(ids.length);
  for (const { body, headers } of receiver.posts) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
});
