import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buckets, streams } from "@herald/contracts";
import { eventually, expectStatus, operateBroker, type Request, readStream, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Collector, startCollector } from "../harness/collector.ts";
import { inParallel } from "../harness/in-parallel.ts";
import { readMetrics } from "../harness/metrics.ts";
import { apnsToken } from "../harness/project.ts";
import { serviceAccount, settingsFor } from "../harness/providers.ts";
import { newAddress } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, serviceNames, startSystem } from "../harness/system.ts";
import { claimsOf, hs256 } from "../harness/user-tokens.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../harness/webhook-receiver.ts";
import { show } from "./figures.ts";
import { changed, placesOf } from "./mangle.ts";
import { callsOf, credentialOf } from "./route-calls.ts";
import { snapshotOf } from "./snapshot.ts";
import { newWorld } from "./world.ts";

let system: System;
let collector: Collector;
let receiver: WebhookReceiver;
beforeAll(async () => {
  collector = await startCollector();
  receiver = await startWebhookReceiver(({ event }) => (event.type === "io.herald.webhook.ping.v1" ? 500 : 204));
  system = await startSystem({
    env: {
      ...collector.env,
      HERALD_LOG_LEVEL: "trace",
      HERALD_GATEWAY_LIMIT_FAILURES: "1000000",
    },
  });
});
afterAll(async () => {
  await system?.stop();
  await receiver?.stop();
  await collector?.stop();
});
logOnFailure(() => system);

/** Part of every planted value; no program writes it otherwise. */
const mark = "plantedzq";
const plant = (what: string) => `${mark}-${what}-${randomUUID()}`;
/** A middle line of a PEM key: JSON would escape the line breaks of the whole key. */
const coreOf = (pem: string) => pem.split("\n")[1] ?? "";

/** Where what is kept must be, to be sent: a database that only its service reads, and messages on their way to be worked on. */
const kept: Record<string, RegExp> = {
  "push token": /^(registry\.(devices|expansions)|dispatch\.(notifications|deliveries)|PUSH_(CMD|DELIVER|DLQ))$/,
  "subscription's secret": /^(registry\.devices|dispatch\.deliveries|PUSH_DELIVER)$/,
  content: /^(dispatch\.notifications|PUSH_(CMD|DLQ))$/,
  "app's data": /^(registry\.devices|dispatch\.notifications|PUSH_CMD)$/,
  "webhook's address": /^analytics\.webhooks$/,
  // Dead letters are stored unchanged, for an operator to read.
  "malformed message": /^PUSH_(DLQ|EVENTS)$/,
  // Of topics, projects, kinds, tokens, operators and types of activities: what a person calls them is in what is told of them.
  name: /^(registry\.|dispatch\.|analytics\.(notificationFacts|webhook)|PUSH_(CMD|DELIVER|EVENTS)$|KV_push_(activities|operators|projects)$)/,
};

/** Everything that the system writes, by place. */
async function everywhere(): Promise<Record<string, readonly string[]>> {
  const metrics = serviceNames.map((name) => readMetrics(system.services[name].metrics));
  const places: Record<string, readonly string[]> = {
    logs: system.logs.lines.map(({ line }) => line),
    traces: collector.bodies,
    metrics: await Promise.all(metrics),
    "log of the broker": [await readFile(join(system.broker.dataDir, "nats-server.log"), "utf8")],
    ...(await snapshotOf(system)),
  };
  for (const stream of [...Object.keys(streams), ...Object.keys(buckets).map((bucket) => `KV_${bucket}`)])
    places[stream] = (await readStream(system.broker, stream)).map((message) => JSON.stringify(message));
  return places;
}

const spellings = (secret: string) => [
  secret,
  Buffer.from(secret).toString("base64").replace(/=+$/, ""),
  Buffer.from(secret).toString("hex"),
  encodeURIComponent(secret),
];

test("planted secrets are in no log, trace, metric, error, event or store", async ({ task }) => {
  const environment = system.environmentOf("dispatch");
  const world = await newWorld(system, "Secrets");
  const { project } = world;
  const secrets: Record<string, string[]> = {
    "admin token": [system.adminToken],
    "project token": [project.token],
    "device credential": [world.credential],
    "open token": [world.openToken],
    "broker's password": serviceNames.map((name) => system.broker.loginOf(name).HERALD_NATS_PASSWORD ?? ""),
    "master key": (environment.HERALD_DISPATCH_MASTER_KEYS ?? "").split(",").map((key) => key.split(":")[1] ?? ""),
    "key of open tokens": (environment.HERALD_OPEN_KEYS ?? "").split(",").map((key) => key.split(":")[1] ?? ""),
  };
  const add = (kind: string, ...more: string[]) => {
    secrets[kind] = [...(secrets[kind] ?? []), ...more];
    return more[0] ?? "";
  };
  const answers: string[] = [];
  /** A call whose answer is searched too, unless it is the one that shows the created secret. */
  const call = async (route: string, options: Request = {}, shows = false) => {
    const answer = await request(system.gateway, route, { token: project.token, ...options });
    if (!shows) answers.push(`${route.split("?")[0]} ${answer.text}`);
    return answer;
  };

  // Valid and refused keys of providers.
  const providers = `/admin/v1/projects/${project.id}/providers`;
  const operator = { token: system.adminToken };
  const nobody = "https://127.0.0.1:9";
  const addresses = { apns: nobody, fcm: nobody, webpush: nobody, control: nobody, ca: "any" };
  const apns = settingsFor("apns", addresses) as { private_key: string };
  add("provider's key", coreOf(apns.private_key), coreOf(serviceAccount().private_key));
  const broken = add("provider's key", plant("key"));
  const pem = `-----BEGIN PRIVATE KEY-----\n${broken}\n-----END PRIVATE KEY-----`;
  await call(`PUT ${providers}/apns`, { ...operator, body: { ...apns, endpoint: undefined, private_key: pem } });
  await call(`PUT ${providers}/fcm`, {
    ...operator,
    body: { service_account: { ...serviceAccount(), private_key: pem } },
  });
  await call(`POST ${providers}/webpush/keys`, {
    ...operator,
    body: { key: { public_key: world.nextKey, private_key: add("provider's key", plant("vapid")) } },
  });
  for (const provider of ["apns", "fcm", "webpush", "webpush/keys"])
    await call(`GET ${providers}/${provider}`, operator);

  // Webhooks: their secrets, and a secret in their address.
  const url = receiver.urlOf(
    `/${add("webhook's address", plant("path"))}?key=${add("webhook's address", plant("query"))}`,
  );
  const hook = expectStatus(await call("POST /api/v1/webhooks", { body: { webhook: { url } } }, true), 201).body;
  const rotated = expectStatus(await call(`POST /api/v1/webhooks/${hook.data.id}/secret`, {}, true), 201).body;
  add("webhook's secret", ...[hook.secret, rotated.secret].map((secret: string) => secret.replace("whsec_", "")));
  await call(`POST /api/v1/webhooks/${hook.data.id}/ping`);
  await call("POST /api/v1/webhooks", {
    body: { webhook: { url: `https://u:${add("webhook's address", plant("password"))}@a.example/` } },
  });

  // Users: the secret that their tokens are signed with, and tokens, good and bad.
  const identityKeys = `POST /admin/v1/projects/${project.id}/identity-keys`;
  const { secret } = expectStatus(await call(identityKeys, { ...operator, body: {} }, true), 201).body;
  add("identity secret", secret);
  const loggedIn = hs256(secret, { claims: claimsOf(project.id, "u_8412") });
  const expired = hs256(secret, { claims: claimsOf(project.id, "u_8412", { exp: 1 }) });
  for (const userToken of [loggedIn, expired, hs256(`${secret}x`, { claims: claimsOf(project.id, "u_8412") })]) {
    add("user token", userToken, userToken.split(".")[2] ?? "");
    const body = { project_id: project.id, platform: "ios", identifier: apnsToken(), user_token: userToken };
    await call("PUT /api/v1/identification", { token: undefined, body }, true);
    await call("PATCH /api/v1/metadata", { token: world.credential, body: { metadata: {}, user_token: userToken } });
    await call("GET /api/v1/devices", { token: userToken });
  }
  await call(`PUT /api/v1/users/u_8412/devices/${world.device.id}`, { token: secret });

  // Devices of all platforms with data of the app, and sends to them that go well, fail and wait.
  const app = {
    metadata: { name: add("app's data", plant("metadata")) },
    identifiers: { serial: add("app's data", plant("identifier")) },
  };
  const subscription = await newAddress(system.simulators, "web");
  const web = await project.register({ platform: "web", ...subscription, ...app });
  const ios = [apnsToken("5e"), apnsToken("d1"), apnsToken("e5")];
  add("push token", ...ios, subscription.token);
  add("subscription's secret", subscription.keys?.auth ?? "");
  for (const token of ios) add("device credential", (await project.register({ token, ...app })).credential);
  add("device credential", web.credential);
  await system.simulators.script([
    { provider: "apns", tokenPrefix: "d1", status: 400, reason: "BadDeviceToken" },
    { provider: "apns", tokenPrefix: "e5", status: 503, reason: "ServiceUnavailable", times: 1 },
    { provider: "webpush", status: 403, times: 1, body: subscription.token },
  ]);
  const content = {
    ttl: 15, // the browser's push waits for a credential that is never corrected
    title: add("content", plant("title")),
    body: add("content", plant("body")),
    data: { [add("content", plant("key"))]: add("content", plant("data")) },
    link_to: `https://shop.example/${add("content", plant("link"))}`,
    targets: [...ios.map((token) => `token:${token}`), `metadata:name=${app.metadata.name}`],
  };
  const headers = {
    "idempotency-key": add("idempotency key", plant("idempotency")),
    cookie: add("header", plant("cookie")),
  };
  const { id } = await project.send(content, headers);
  await project.final(id, 60_000);
  for (const push of await system.simulators.pushes()) {
    const open = payloadOf(push)?.token;
    if (open) add("open token", open);
  }
  await call(`GET /api/v1/devices/${plant("path")}?x=${plant("query")}`);
  await call("GET /api/v1/devices", { token: `${project.token}x` });
  await call("POST /api/v1/notifications", { body: `{"title":"${plant("half")}` });

  // Every field of every route.
  for (const { route, method, path, body } of callsOf(world)) {
    if (body === undefined || method === "GET") continue;
    const token = credentialOf(route, system.adminToken, world);
    await inParallel(placesOf(body), 4, async (at) => {
      const text = plant("field");
      const sent = changed(body, at, () => text);
      const answer = await request(system.gateway, `${method} ${path}`, { token, body: sent });
      if (answer.status >= 400) answers.push(answer.text.replaceAll(text, ""));
      else if (at.length > 0) add("name", text);
    });
  }
  // Two of the routes pause what follows.
  for (const path of ["", `/projects/${project.id}`]) expectStatus(await system.admin(`POST ${path}/resume`), 200);

  // Messages that cannot be processed, and a database that is unavailable.
  const hands = await operateBroker(system.broker);
  for (const subject of [
    "push.cmd.v1.dispatch.send.a.b",
    "push.cmd.v1.registry.expand.a.b.0",
    "push.deliver.v1.direct.ios.a",
    "push.evt.v1.a.delivery.failed",
  ]) {
    const text = add("malformed message", plant("message"));
    await hands.publish(
      subject,
      JSON.stringify({ platform: text, [text]: text, projectId: text, devices: [{ token: text }] }),
    );
    await hands.publish(subject, `{"half":"${text}`);
  }
  await hands.close();
  await system.database.cut();
  await call(`GET /api/v1/devices/${world.device.id}`, { token: world.credential });
  const late = await project.send(content);
  await system.database.heal();
  await system.ready();
  await project.final(late.id, 60_000);
  await eventually(() => expect(collector.spans.filter(({ name }) => name === "send apns").length).toBeGreaterThan(2), {
    timeoutMs: 30_000,
  });

  const places: Record<string, readonly string[]> = { ...(await everywhere()), answers };
  // The search finds allowed values, so it would also find forbidden ones. Spans contain no device ids.
  for (const [place, there] of Object.entries({ logs: id, PUSH_EVENTS: id, traces: "send apns", metrics: "herald_" }))
    expect(
      places[place]?.some((text) => text.includes(there)),
      place,
    ).toBe(true);
  const wrong: string[] = [];
  const stays: Record<string, Set<string>> = {};
  for (const [kind, all] of Object.entries(secrets))
    for (const secret of new Set(all)) {
      expect(secret.length, kind).toBeGreaterThan(12);
      for (const [place, texts] of Object.entries(places)) {
        const found = texts.find((text) => spellings(secret).some((spelling) => text.includes(spelling)));
        if (found === undefined) continue;
        if (kept[kind]?.test(place) || (place === "answers" && kept[kind] !== undefined))
          stays[kind] = (stays[kind] ?? new Set()).add(place);
        else wrong.push(`${kind} in ${place}: ${found.slice(0, 600)}`);
      }
    }
  // No planted value may be in logs, traces and metrics.
  for (const place of ["logs", "traces", "metrics", "log of the broker"]) {
    const found = places[place]?.find((text) => text.includes(mark));
    if (found !== undefined)
      wrong.push(`something planted in ${place}: ${found.slice(Math.max(0, found.indexOf(mark) - 300)).slice(0, 600)}`);
  }
  expect(wrong).toEqual([]);
  show(task, {
    secrets: Object.values(secrets).flat().length,
    places: Object.keys(places).length,
    texts: Object.values(places).flat().length,
    "by design": Object.entries(stays)
      .map(([kind, where]) => `the ${kind} in ${[...where].join(" and ")}`)
      .join("; "),
  });
});
