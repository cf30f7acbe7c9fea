import { newNotificationId, type SendV1 } from "@herald/contracts";
import { type BrokerHands, eventually, expectStatus, type HttpAnswer, operateBroker, request } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { cpuSeconds } from "../../bench/src/processes.ts";
import { readMetrics } from "../harness/metrics.ts";
import type { Project, Registered } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type ServiceName, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

let system: System;
let hands: BrokerHands;
let project: Project;
let known: Registered;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  hands = await operateBroker(system.broker);
  project = await system.project("Content");
  known = await project.register({ identifiers: { app_version: "2.10" } });
  await seed(system, project, pageful, { topics: ["everyone"] });
});
afterAll(async () => {
  await hands?.close();
});
logOnFailure(() => system);

/** About as many devices as registry reads at a time. */
const pageful = 1_500;

/** Milliseconds of CPU that a service has used, in user and kernel. */
const cpuOf = (service: ServiceName): number => Math.round(1_000 * cpuSeconds(system.services[service].pid()));

/** The CPU ms of `work` in each service, and its result. */
async function costOf<Result>(work: () => Promise<Result>): Promise<{ result: Result; cost: Record<string, number> }> {
  const names = ["gateway", "registry", "dispatch"] as const;
  const before = names.map(cpuOf);
  const result = await work();
  const after = names.map(cpuOf);
  const spent = names.map((name, at) => [`CPU ms of ${name}`, (after[at] ?? 0) - (before[at] ?? 0)]);
  return { result, cost: Object.fromEntries(spent) };
}

const post = (notification: object): Promise<HttpAnswer> =>
  project.call("POST /notifications", { body: { notification } });

const problemsOf = ({ status, body }: HttpAnswer) => ({ status, errors: (body.errors ?? []).join("\n") });

/** A condition that matches no device, but requires every clause to be evaluated for every device. A clause has 17 bytes. */
const clauses = (count: number) => `${"!('x'in topics)&&".repeat(count - 1)}platform=='x'`;

const manyConditions = (count: number, each: number) =>
  Array.from({ length: count }, () => `condition:${clauses(each)}`);

/** A body full of these conditions. */
const flood = { conditions: 230, each: 230 };
const floodOfClauses = flood.conditions * flood.each;
/** On the bus, where an older gateway has left it, all of it is evaluated: the whole body takes seconds. */
const onBus = { conditions: scale(230, 100), each: scale(230, 100) };

/** A refusal costs only parsing; evaluating the body for a page of devices cost 47,000 ms. */
const maxRefusalCpuMs = 10_000;

test("conditions of tens of thousands of clauses are refused", async ({ task }) => {
  const targets = manyConditions(flood.conditions, flood.each);
  const { result, cost } = await costOf(() => post({ title: "Never", targets, dry_run: true }));
  show(task, { clauses: floodOfClauses, devices: pageful, ...cost });
  expect(problemsOf(result)).toEqual({
    status: 422,
    errors: expect.stringMatching(/notification\.targets\.0: .*at most 200/),
  });
  expect(cost["CPU ms of registry"]).toBeLessThan(maxRefusalCpuMs);

  const values = `condition:metadata.plan in [${Array.from({ length: 2_000 }, () => 1).join(",")}]`;
  expect(await post({ title: "Never", targets: [values] }).then(problemsOf)).toMatchObject({ status: 422 });
  const allowed = await post({ title: "Never", targets: manyConditions(10, 20), dry_run: true });
  expect(allowed).toMatchObject({ status: 200, body: { data: { devices: { total: 0 } } } });
});

test("a huge condition on the bus ends, and others are answered meanwhile", async ({ task }) => {
  const other = await system.project("Beside");
  const { device } = await other.register();
  const now = new Date();
  const id = newNotificationId(now);
  const send: SendV1 = {
    projectId: project.id,
    notificationId: id,
    content: { title: "Accepted before", targets: [known.device.id, ...manyConditions(onBus.conditions, onBus.each)] },
    acceptedAt: now.toISOString(),
    expiresAt: new Date(now.getTime() + 3_600_000).toISOString(),
  };
  const { result, cost } = await costOf(async () => {
    await hands.publish(`push.cmd.v1.dispatch.send.${project.id}.${id}`, JSON.stringify(send));
    let answered = 0;
    const refused: number[] = [];
    const final = project.final(id, 300_000);
    const ended = final.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, Promise.resolve(false)]))) {
      const { status } = await other.call(`GET /devices/${device.id}`);
      if (status === 200) answered++;
      else refused.push(status);
    }
    return { answered, refused, notification: await final };
  });
  const { answered, refused } = result;
  show(task, {
    clauses: onBus.conditions * onBus.each,
    "questions of others answered": answered,
    refused: refused.length,
    ...cost,
  });
  expect(refused).toEqual([]);
  expect(result.notification).toMatchObject({ status: "completed", counts: { devices: 1, accepted: 1 } });
  expect(answered).toBeGreaterThan(0);
  expect(result.notification.unmatched).toHaveLength(onBus.conditions);
});

/** JSON of about `bytes` bytes, in fields that had no size limit. */
const heavy: readonly [string, (bytes: number) => object][] = [
  ["android", (bytes) => ({ android: { data: { blob: "x".repeat(bytes) } } })],
  ["web", (bytes) => ({ web: { blob: "x".repeat(bytes) } })],
  ["web", (bytes) => ({ web: Object.fromEntries(Array.from({ length: bytes / 12 }, (_, at) => [`k${at}`, {}])) })],
  [
    "localizations",
    (bytes) => ({
      localizations: Object.fromEntries(
        Array.from({ length: bytes / 800 }, (_, at) => [`en-${at}`, { body: "x".repeat(780) }]),
      ),
    }),
  ],
  [
    "localizations",
    (bytes) => ({ localizations: Object.fromEntries(Array.from({ length: bytes / 14 }, (_, at) => [`en-${at}`, {}])) }),
  ],
];

test("content of nearly a megabyte is refused with its largest field", async ({ task }) => {
  const rounds = scale(40, 8);
  const before = await memoryOf(system, "dispatch");
  const wrong: string[] = [];
  const { cost } = await costOf(async () => {
    for (let round = 0; round < rounds; round++) {
      for (const [field, content] of heavy) {
        const answer = await post({ title: "Heavy", targets: [known.device.id], ...content(900_000) });
        const { status, errors } = problemsOf(answer);
        // An object with too many fields is refused before its content is checked.
        const named = errors.includes(`notification.${field}`) || errors.includes("at most 1000 fields");
        if (status !== 422 || !named) wrong.push(`${field}: ${status} ${errors}`);
      }
    }
  });
  const after = await memoryOf(system, "dispatch");
  const figures = { requests: rounds * heavy.length, accepted: wrong.length, ...cost };
  const memory = { "MB of dispatch before": before, "MB of dispatch after": after };
  show(task, { ...figures, ...memory });
  expect(wrong).toEqual([]);
  const { id } = await project.send({ title: "Light", targets: ["all"], web: { blob: "x".repeat(60_000) } });
  const { counts } = await project.final(id);
  expect(counts).toMatchObject({ accepted: counts.devices });
  const metrics = await readMetrics(system.services.dispatch.metrics);
  const figure = (name: string) =>
    Number(new RegExp(`^${name}\\{cache="notifications"\\} (\\S+)`, "m").exec(metrics)?.[1]);
  const [held, max] = [figure("herald_cache_bytes"), figure("herald_cache_limit_bytes")];
  expect(held).toBeGreaterThan(60_000);
  expect(held).toBeLessThanOrEqual(max);
  show(task, { ...figures, ...memory, "bytes held": held, "bytes held at max": max });
});

const badLinks: readonly string[] = [
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  " javascript:alert(1)",
  "\u0001javascript:alert(1)",
  "java\tscript:alert(1)",
  "java\nscript:alert(1)",
  "javascript\r:alert(1)",
  "javascript%3Aalert(1)",
  "%6Aavascript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "DATA:text/html;base64,PHNjcmlwdD4=",
  "vbscript:msgbox(1)",
  "blob:https://example.com/1",
  "//evil.example/x",
  "///evil.example/x",
  "/\\evil.example/x",
  "\\\\evil.example/x",
  "/\t/evil.example/x",
  "/%2Fevil.example/x",
  "/%5cevil.example/x",
  "/%252fevil.example/x",
];
const goodLinks: readonly string[] = [
  "/news/42",
  "/",
  "https://shop.example/orders/7",
  "myapp://orders/7",
  "mailto:a@b.example",
];

/** All fields that can contain a link. */
const placesOf = (link: string): readonly (readonly [string, object])[] => [
  ["link_to", { link_to: link }],
  ["localizations.de.link_to", { localizations: { de: { title: "Hallo", link_to: link } } }],
  ["data.link_to", { data: { link_to: link } }],
  ["ios.link_to", { ios: { link_to: link } }],
  ["android.data.link_to", { android: { data: { link_to: link } } }],
  ["web.notification.navigate", { web: { notification: { navigate: link } } }],
  ["buttons.0.link_to", { buttons: [{ id: "track", title: "Track", link_to: link }] }],
];

test("links that run code or leave the host are refused everywhere", async ({ task }) => {
  const wrong: string[] = [];
  let tried = 0;
  for (const link of badLinks) {
    for (const [field, content] of placesOf(link)) {
      const { status, errors } = problemsOf(await post({ title: "Tap", targets: ["nobody"], ...content }));
      tried++;
      if (status !== 422 || !errors.includes(`notification.${field}`))
        wrong.push(`${field} ${JSON.stringify(link)}: ${status} ${errors}`);
    }
  }
  for (const link of goodLinks) {
    for (const [field, content] of placesOf(link)) {
      const { status, errors } = problemsOf(await post({ title: "Tap", targets: ["nobody"], ...content }));
      if (status !== 202) wrong.push(`${field} ${JSON.stringify(link)} is good: ${status} ${errors}`);
    }
  }
  expect(wrong).toEqual([]);

  // A notification that an older gateway accepted: the push is sent without the link.
  const now = new Date();
  const id = newNotificationId(now);
  const send: SendV1 = {
    projectId: project.id,
    notificationId: id,
    content: {
      title: "Tap",
      targets: [known.device.id],
      link_to: "javascript:alert(1)",
      ios: { data: { link_to: "//evil.example" } },
    },
    acceptedAt: now.toISOString(),
    expiresAt: new Date(now.getTime() + 3_600_000).toISOString(),
  };
  await hands.publish(`push.cmd.v1.dispatch.send.${project.id}.${id}`, JSON.stringify(send));
  expect((await project.final(id)).counts.accepted).toBe(1);
  const pushes = (await system.simulators.pushes({ token: known.device.token })).map(payloadOf);
  const push = pushes.find(({ notification_id }) => notification_id === id);
  expect(push).toBeDefined();
  expect(JSON.stringify(push)).not.toMatch(/javascript|evil/);
  show(task, { requests: tried });
});

test("versions compare by number", async ({ task }) => {
  const reached = async (condition: string) => {
    const { body } = await post({ title: "New", targets: [`condition:${condition}`], dry_run: true });
    return body.data?.devices.total as number;
  };
  expect(await reached("identifiers.app_version >= '2.9'")).toBe(1);
  expect(await reached("identifiers.app_version < '2.9'")).toBe(0);
  show(task, { conditions: 2 });
});

test("an exported CSV has no formula, and is imported unchanged", async ({ task }) => {
  const target = await system.project("Formulas");
  const formula = "=cmd|'/C_calc'!A0";
  const texts = [",", ";", "\t", "\n", "\r\n", ";;", '"', ';"', "';", ";'", ";''"].flatMap((between) =>
    [formula, "+1", "-1", "@x"].map((begin) => `a${between}${begin}${between}z`),
  );
  const register = (device: object) => target.call("POST /devices", { body: { device } });
  const wrong: string[] = [];
  // No provider gives such a push token.
  for (const token of [`fcm;${formula};z`, "=1+1", "a,b", 'a"b', "a|b", "a/b", "ä"])
    for (const device of [
      { platform: "android", token },
      { platform: "ios", provider: "fcm", token },
    ]) {
      const { status } = await register(device);
      if (status !== 422) wrong.push(`${JSON.stringify(device)}: ${status}`);
    }
  const { keys } = await system.simulators.subscribe();
  for (const [index, text] of texts.entries()) {
    const identifiers = { text, [text.replaceAll(/[.\0$]/g, "")]: text };
    const android = { platform: "android", token: `formula:${index}_a-b.c`, metadata: { text }, identifiers };
    expect((await register(android)).status).toBe(201);
    const web = { platform: "web", token: `https://push.example/${index};=1+${index}`, keys };
    expect((await register(web)).status).toBe(201);
  }
  const { token } = await newToken(system, target, ["export", "devices"]);
  const { text: csv } = await request(system.gateway, "GET /api/v1/exports/devices?format=csv&include=keys", { token });
  for (const cell of csv.split(/[;\t\r\n]/)) if (/^"*[=+\-@]/.test(cell)) wrong.push(JSON.stringify(cell));
  expect(wrong).toEqual([]);

  const started = await target.call("POST /imports", { body: { import: { format: "herald" } } });
  const { id } = expectStatus(started, 201).body.data;
  const headers = { authorization: `Bearer ${token}`, "content-type": "text/csv" };
  const upload = `${system.gateway}/api/v1/imports/${id}/content`;
  expect((await fetch(upload, { method: "PUT", headers, body: csv })).status).toBeLessThan(300);
  const rows = texts.length * 2;
  await eventually(async () => {
    const { data } = (await target.call(`GET /imports/${id}`)).body;
    expect(data).toMatchObject({ unchanged: rows, created: 0, updated: 0, refused: 0 });
  });
  show(task, { texts: texts.length, devices: rows, "cells that run": 0 });
});
