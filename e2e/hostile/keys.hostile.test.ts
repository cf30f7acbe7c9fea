import { randomUUID } from "node:crypto";
import { type BrokerHands, expectStatus, type HttpAnswer, operateBroker } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";

const bucket = "KV_push_idempotency";
const mebibyte = 1_048_576;
/** The size of the bucket of keys in this test, instead of 1 GiB. */
const limit = scale(128, 16) * mebibyte;

let system: System;
let hands: BrokerHands;
beforeAll(async () => {
  // No rate limit: with a thousand requests a second the result would be the same, but take longer.
  const plenty = "10000000";
  system = await startSystem({
    env: { HERALD_GATEWAY_LIMIT_PROJECT: plenty, HERALD_NATS_STORAGE: "4GiB" },
  });
  hands = await operateBroker(system.broker);
  await hands.limit(bucket, limit);
  // The gateway measured the larger bucket when the system started.
  await system.services.gateway.kill("SIGTERM");
  await system.services.gateway.ready();
});
afterAll(async () => {
  await hands?.close();
  await system?.stop();
});
logOnFailure(() => system);

test("one project's idempotency keys evict none of another's", async ({ task }) => {
  const victim = await system.project("Victim");
  const attacker = await system.project("Attacker");
  const { device } = await victim.register();
  const body = { notification: { title: "Once", targets: [device.id] } };
  const send = (key: string): Promise<HttpAnswer> =>
    victim.call("POST /notifications", { body, headers: { "idempotency-key": key } });
  const keys = Array.from({ length: 20 }, () => randomUUID());
  const ids = await inParallel(keys, 4, async (key) => expectStatus(await send(key), 202).body.data.id);

  // Register one device repeatedly: the answer is stored for each key, and no quota counts it.
  const text = "m".repeat(16_000);
  const large = { token: apnsToken(), platform: "ios", metadata: { text }, identifiers: { text } };
  const register = (key: string): Promise<HttpAnswer> =>
    attacker.call("POST /devices", { body: { device: large }, headers: { "idempotency-key": key } });
  const held = async () => (await hands.state(bucket)).bytes;
  const [first, repeat] = [randomUUID(), randomUUID()];
  expectStatus(await register(first), 201);
  const { data } = expectStatus(await register(repeat), 200).body;
  const replayed = await register(repeat);
  expect(replayed.headers.get("idempotent-replayed")).toBe("true");
  expect(replayed.body.data).toEqual(data);
  const bytes = JSON.stringify(data).length;

  const asked = Math.ceil((1.5 * limit) / bytes);
  let fullest = 0;
  const begun = Date.now();
  await inParallel(Array.from({ length: asked }), 16, async (_, number) => {
    expect([200, 429, 503]).toContain((await register(randomUUID())).status);
    if (number % 50 === 0) fullest = Math.max(fullest, await held());
  });

  const again = await inParallel(keys, 4, (key) => send(key));
  const lost = again.filter(({ headers }) => headers.get("idempotent-replayed") !== "true").length;
  show(task, {
    "bytes a key": bytes,
    keys: asked,
    "of the bucket's limit": "1.5 ×",
    fullest: `${Math.round((fullest / limit) * 100)} %`,
    "within s": Math.round((Date.now() - begun) / 1_000),
    "other project's keys": keys.length,
    "of them lost": lost,
  });
  expect(lost).toBe(0);
  expect(again.map(({ body: { data } }) => data.id)).toEqual(ids);
});
