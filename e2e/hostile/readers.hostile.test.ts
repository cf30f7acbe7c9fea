import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually, expectStatus, type HttpAnswer, request } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken, type Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { nowSeconds } from "../harness/user-tokens.ts";
import { show } from "./figures.ts";
import { type Latency, latencyDuring, maxTicks } from "./latency.ts";
import { memoryOf, peakMemory } from "./memory.ts";
import { callsOf } from "./route-calls.ts";
import { test } from "./shared-system.ts";
import { createUserApps, type Named, tokenOf, type UserApps, userOf } from "./user-apps.ts";
import { newToken, newWorld } from "./world.ts";

let system: System;
let users: UserApps;
let receiver: Server;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  users = createUserApps(system);
  // Like many servers, it quotes the path in its error page.
  receiver = createServer((asked, response) => response.writeHead(404).end(`Cannot POST ${asked.url}`));
  await once(receiver.listen(0, "127.0.0.1"), "listening");
});
afterAll(async () => {
  receiver?.closeAllConnections();
  receiver?.close();
});
logOnFailure(() => system);

/** The beginning of a stream of events, which does not end. */
async function firstEvents(url: string, headers: Record<string, string>, count: number): Promise<string> {
  const stopped = new AbortController();
  const { body } = await fetch(url, { headers, signal: stopped.signal });
  let text = "";
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (text.split("\ndata: ").length > count) break;
  }
  stopped.abort();
  return text;
}

test("no route shows a reader a push token or a webhook's path", async ({ task }) => {
  const world = await newWorld(system, "Readers");
  const { project, user, device } = world;
  const phones = [
    device.token,
    (await project.register({ platform: "android", token: `fcm:${apnsToken()}`, user_id: user })).device.token,
    (await project.register({ user_id: user })).device.token,
  ];
  const unknown = apnsToken();
  const targets = [...phones, unknown].map((token) => `token:${token}`);
  const { id } = await project.send({ title: "Quoted", targets });
  const large = await project.send({ title: "Quoted", targets: ["all", ...targets] });
  await Promise.all([project.final(id), project.final(large.id)]);
  const { port } = receiver.address() as AddressInfo;
  const secretPath = "/services/T000/B000/webhook-credential";
  const webhook = { url: `http://127.0.0.1:${port}${secretPath}?key=query-credential` };
  const hook = expectStatus(await project.call("POST /webhooks", { body: { webhook } }), 201).body.data.id;
  const ping = expectStatus(await project.call(`POST /webhooks/${hook}/ping`), 202).body.data.id;
  const message = `/webhooks/${hook}/messages/${ping}`;
  await eventually(async () =>
    expect((await project.call(`GET ${message}`)).body.data.attempts[0].response).toContain(secretPath),
  );
  const secrets = [...phones, unknown, "webhook-credential", "query-credential", world.credential, world.openToken];

  const viewer = await system.operator({ name: "Viewer", role: "viewer" });
  const own: Record<string, Record<string, string>> = {
    read: { authorization: `Bearer ${(await newToken(system, project, ["read"])).token}` },
    viewer: {
      authorization: `Bearer ${viewer.token}`,
      "herald-project": project.id,
    },
  };
  const more = [
    `/devices/${device.id}/notifications`,
    `/devices?token=${device.token}`,
    `/devices?match=token:${device.token}`,
    `/devices?sort=-created_at`,
    `/users/${user}`,
    `/users/${user}/notifications`,
    ...[id, large.id].flatMap((one) => [
      `/notifications/${one}`,
      `/notifications/${one}/deliveries`,
      `/notifications/${one}/devices/${device.id}`,
    ]),
    "/webhooks",
    `/webhooks/${hook}`,
    `/webhooks/${hook}/messages`,
    message,
  ].map((path) => `/api/v1${path}`);
  const known = callsOf(world).filter(({ method }) => method === "GET");
  const paths = [...known.map(({ path }) => path), ...more].filter((path) => !path.startsWith("/api/v1/events"));
  const leaks: string[] = [];
  let answered = 0;
  const look = (who: string, what: string, text: string) => {
    // In a URL that the reader wrote, such as that of the next page, it learns nothing.
    for (const [index, secret] of secrets.entries())
      if (text.replaceAll(/"(instance|next|link)":"[^"]*"/g, "").includes(secret))
        leaks.push(`${who} ${what}: ${index}`);
  };
  for (const [who, headers] of Object.entries(own)) {
    await inParallel(paths, 4, async (path) => {
      const { status, text } = await request(system.gateway, `GET ${path}`, { headers });
      if (status === 200) answered++;
      look(who, path.replace(/\?.*/, ""), text);
    });
    const since = new Date(Date.now() - 600_000).toISOString();
    look(who, "events", await firstEvents(`${system.gateway}/api/v1/events?since=${since}`, headers, 15));
  }
  const sender = await newToken(system, project, ["send"]);
  const waiting = await project.send({
    title: "Later",
    targets,
    send_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const cancelled = await request(system.gateway, `DELETE /api/v1/notifications/${waiting.id}`, sender);
  expectStatus(cancelled, 200);
  look("send", "cancel", cancelled.text);
  expect(leaks.toSorted()).toEqual([]);
  expect(answered).toBeGreaterThan(50);

  // Readers recognise a device by the end of its token, and may ask for a whole one that they know.
  const seen = await request(system.gateway, `GET /api/v1/devices?token=${device.token}`, { headers: own.read ?? {} });
  expect(seen.body.data.map((one: { token: string }) => one.token)).toEqual([`…${device.token.slice(-8)}`]);
  const hidden = await request(system.gateway, `GET /api/v1/webhooks/${hook}`, { headers: own.viewer ?? {} });
  expect(hidden.body.data.url).toBe(`http://127.0.0.1:${port}/…`);
  for (const scope of ["devices", "export"] as const) {
    const { token } = await newToken(system, project, ["read", scope]);
    const whole = await request(system.gateway, `GET /api/v1/devices/${device.id}`, { token });
    expect(whole.body.data.token, scope).toBe(device.token);
  }
  show(task, { answers: answered, "values searched": secrets.length, shown: leaks.length });
});

const lookAt = async (project: Project, id: string) =>
  expectStatus(await project.call(`GET /devices/${id}`), 200).body.data;

test("a push token alone redirects no push and undoes no deactivation", async ({ task }) => {
  const project = await users.newProject("Known token");
  const token = apnsToken();
  const body = { identifier: token, environment: "production", installation_id: "own-installation" };
  const first = expectStatus(await users.identify(project, body), 201).body;
  const id: string = first.data.id;
  const off = await project.call(`PATCH /devices/${id}`, { body: { device: { status: "inactive" } } });
  expectStatus(off, 200);
  const before = await lookAt(project, id);
  const stolen = { identifier: token, environment: "sandbox", installation_id: "of-another" };
  const answer = expectStatus(await users.identify(project, stolen), 200).body;
  const after = await lookAt(project, id);
  expect(after).toMatchObject({ status: "inactive", inactive_reason: "requested" });
  for (const field of ["environment", "installation_id"]) expect(after[field]).toEqual(before[field]);
  expect(await users.reached(project, ["all"])).toEqual([]);
  expect(answer).toEqual({ data: { id, status: "inactive" }, ignored: ["environment", "installation_id"] });
  // The response does not depend on what is stored, so nothing can be guessed.
  const guess = await users.identify(project, body);
  expect(guess.body.ignored).toEqual(["environment", "installation_id"]);

  // The same for the keys of a subscription, and for the kind of an FCM token.
  const subscription = await system.simulators.subscribe();
  const other = await system.simulators.subscribe();
  const web = { platform: "web", identifier: subscription.endpoint, keys: subscription.keys };
  const page = expectStatus(await users.identify(project, web), 201).body.data.id;
  const taken = await users.identify(project, { ...web, keys: other.keys });
  expect(taken.body.ignored).toEqual(["keys"]);
  const android = { platform: "android", identifier: `fcm:${apnsToken()}` };
  const fcm = expectStatus(await users.identify(project, { ...android, token_kind: "token" }), 201).body.data.id;
  expect((await users.identify(project, { ...android, token_kind: "fid" })).body.ignored).toEqual(["token_kind"]);
  expect((await lookAt(project, fcm)).token_kind).toBe("token");
  const { token: exporting } = await newToken(system, project, ["export"]);
  const rows = await request(system.gateway, "GET /api/v1/exports/devices?platform=web&include=keys", {
    token: exporting,
  });
  expect(JSON.parse(rows.text)).toMatchObject({ id: page, keys: subscription.keys });

  // The device itself changes all of it, and anybody may bring back a device that its provider retired.
  const own = expectStatus(await users.identify(project, stolen, first.credential), 200).body;
  expect(own).toEqual({ data: { id, status: "active" } });
  expect(await lookAt(project, id)).toMatchObject({ environment: "sandbox", installation_id: "of-another" });
  const retired = apnsToken("dead");
  const gone = expectStatus(await users.identify(project, { identifier: retired }), 201).body.data.id;
  await system.simulators.script([{ provider: "apns", tokenPrefix: "dead", status: 410 }]);
  await project.final((await project.send({ title: "Gone", targets: [gone] })).id);
  await eventually(async () => expect((await lookAt(project, gone)).inactive_reason).toBe("unregistered"));
  await system.simulators.script([]);
  const back = expectStatus(await users.identify(project, { identifier: retired }), 200).body;
  expect(back).toEqual({ data: { id: gone, status: "active" } });
  show(task, { "fields kept": 4, "pushes to a deactivated device": 0 });
});

const imported = async (project: Named, device: object = {}): Promise<{ id: string; token: string }> => {
  const token = apnsToken();
  const body = { devices: [{ token, platform: "ios", ...device }] };
  return { id: expectStatus(await project.call("PUT /devices", { body }), 200).body.data[0].id, token };
};

test("an imported device's credential goes to its user or backend alone", async ({ task }) => {
  const project = await users.newProject("Imported");
  const mine = await imported(project, { user_id: "ann" });
  const login = ({ token: identifier }: { token: string }, user?: string): Promise<HttpAnswer> =>
    users.identify(project, { identifier, ...(user !== undefined && { user_token: tokenOf(project, user) }) });
  const credentialOf = async (answer: Promise<HttpAnswer>) => expectStatus(await answer, 200).body.credential;

  expect(await credentialOf(login(mine))).toBeUndefined();
  const credential = await credentialOf(login(mine, "ann"));
  expect(credential).toMatch(/^hdc_/);
  expectStatus(await users.own(`GET /devices/${mine.id}`, credential), 200);
  expect(await credentialOf(login(mine, "ann"))).toBeUndefined();
  expectStatus(await users.own(`GET /devices/${mine.id}`, credential), 200);

  // Who claims the device with a token of their own becomes its user, but gets no credential, also not the second time.
  let claims = 0;
  for (const device of [await imported(project, { user_id: "victim" }), await imported(project)]) {
    for (let turn = 0; turn < 3; turn++, claims++) expect(await credentialOf(login(device, "thief"))).toBeUndefined();
    expect(await userOf(project, device.id)).toBe("thief");
    const body = { device: { token: device.token, platform: "ios" } };
    const registered = expectStatus(await project.call("POST /devices", { body }), 200).body;
    expectStatus(await users.own(`GET /devices/${device.id}`, registered.credential), 200);
  }
  show(task, { claims, "credentials gained": 0 });
});

test("a claimed device's pushes do not move to another phone", async ({ task }) => {
  const project = await users.newProject("Claimed");
  const victim = await users.phone(project, "victim");
  const change = { device: { metadata: { account: "7" } } };
  expectStatus(await project.call(`PATCH /devices/${victim.id}`, { body: change }), 200);
  const attackers = apnsToken();
  const at = nowSeconds();
  const userToken = tokenOf(project, "thief", { iat: at + 5 });
  expectStatus(await users.identify(project, { identifier: victim.token, user_token: userToken }), 200);
  const rotation = { identifier: attackers, previous_identifier: victim.token, user_token: userToken };
  const answer = expectStatus(await users.identify(project, rotation), 200, 201).body;
  expect(answer.data.id).not.toBe(victim.id);
  expect(await users.reached(project, ["metadata:account=7"])).toEqual([victim.id]);
  expect(await system.simulators.pushes({ token: attackers })).toEqual([]);
  // The device still proves itself, and its user with it.
  const back = { device: { user_token: tokenOf(project, "victim", { iat: at + 10 }) } };
  expectStatus(await users.own(`PATCH /devices/${victim.id}`, victim.credential, back), 200);
  const renewed = {
    identifier: apnsToken(),
    previous_identifier: victim.token,
    user_token: tokenOf(project, "victim"),
  };
  expect(expectStatus(await users.identify(project, renewed), 200).body.data.id).toBe(victim.id);
  show(task, { "pushes on the attacker's phone": 0 });
});

const locales = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => String.fromCharCode(97 + Math.floor(n / 26), 97 + (n % 26)));

/** A send to one recipient whose text is compiled to as much as Herald accepts: each `{{a}}` is some fifty bytes then. */
const largestText = (languages: number) => ({
  title: "{{ a }}",
  variables: { a: "" },
  recipients: [{ target: "user:reader", variables: {} }],
  localizations: Object.fromEntries(locales(languages).map((locale) => [locale, { body: "{{a}}".repeat(200) }])),
});

test("lists and exports do not read compiled texts", async ({ task }) => {
  const project = await system.project("Readers of texts");
  await project.register({ user_id: "reader" });
  const send = (languages: number) =>
    project.call("POST /notifications", { body: { notification: largestText(languages) } });
  const sizes = [55, 45, 35, 25, 18, 12, 8, 6, 5, 4, 3, 2];
  let languages = 0;
  for (const size of sizes) {
    if ((await send(size)).status !== 202) continue;
    languages = size;
    break;
  }
  expect(languages).toBeGreaterThan(0);
  const count = 24;
  await inParallel(Array.from({ length: count }), 4, async () => expectStatus(await send(languages), 202));
  await eventually(async () => expect((await project.notifications()).length).toBe(count + 1), { timeoutMs: 60_000 });

  const { token } = await newToken(system, project, ["read", "export"]);
  const before = await memoryOf(system, "dispatch");
  const statuses: number[] = [];
  const read = async (path: string) => {
    const { status } = await request(system.gateway, `GET /api/v1/${path}`, { token });
    statuses.push(status);
  };
  const lists = ["notifications?per_page=100", "notifications?per_page=100&after="];
  const reading = Promise.all([
    inParallel(Array.from({ length: 30 }), 10, (_, n) => read(`${lists[n % lists.length]}`)),
    // A project has few exports at a time.
    inParallel(Array.from({ length: 4 }), 1, () => read("exports/notifications")),
  ]);
  const neighbour = await system.project("Beside readers");
  let beside: Latency | undefined;
  const peak = await peakMemory(
    system,
    "dispatch",
    (async () => {
      beside = await latencyDuring(
        () => neighbour.call("GET /notifications"),
        () => reading,
        system.services.analytics,
      );
    })(),
  );
  show(task, {
    "languages of each text": languages,
    "lists and exports, read": statuses.filter((status) => status === 200).length,
    "of them refused": statuses.filter((status) => status !== 200).length,
    "MB of dispatch": `${before} → ${peak}`,
    "another's reads meanwhile, p99 ms": beside?.p99 ?? 0,
  });
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(peak - before).toBeLessThan(150);
  expect(beside?.ticks).toBeLessThan(maxTicks);
});

test("many pages of the largest notifications do not block other lists", async ({ task }) => {
  const project = await system.project("Readers of pages");
  const notification = {
    title: "To no one",
    targets: ["user:none"],
    localizations: Object.fromEntries(locales(100).map((locale) => [locale, { body: "y".repeat(600) }])),
  };
  const notifications = Array.from({ length: 20 }, () => notification);
  for (let n = 0; n < 5; n++)
    expectStatus(await project.call("POST /notifications/batch", { body: { notifications } }), 202);
  await eventually(async () => expect(await project.notifications()).toHaveLength(100), { timeoutMs: 60_000 });
  const neighbour = await system.project("Beside pages");
  const before = await memoryOf(system, "dispatch");
  let answered = 0;
  const reading = inParallel(Array.from({ length: 64 }), 48, async () => {
    const { status } = await project.call("GET /notifications?per_page=100&after=");
    if (status === 200) answered++;
  });
  let beside = { p99: 0, answered: 0 };
  const during = async () => {
    beside = await latencyDuring(
      () => neighbour.call("GET /notifications"),
      () => reading,
      system.services.analytics,
    );
  };
  const peak = await peakMemory(system, "dispatch", during());
  show(task, {
    "pages of 6 MB, of 64": answered,
    "MB of dispatch": `${before} → ${peak}`,
    "another's lists meanwhile": beside.answered,
    "p99 ms": beside.p99,
  });
  expect(beside.answered).toBeGreaterThan(0);
  expect(peak - before).toBeLessThan(200);
});
