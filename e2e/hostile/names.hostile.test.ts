import { buckets, contractOf, durables, installation, ProjectId } from "@herald/contracts";
import { type BrokerHands, eventually, expectStatus, operateBroker, request } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newWorld, type World } from "./world.ts";

let system: System;
let hands: BrokerHands;
let world: World;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  hands = await operateBroker(system.broker);
  world = await newWorld(system, "Names");
});
afterAll(async () => {
  await hands?.close();
});
logOnFailure(() => system);

/** Part of every name, to find subjects that contain a name. */
const mark = "zqxmark";
const names: readonly string[] = [
  ...[
    `${mark}.a`,
    `a.${mark}`,
    `${mark}.*`,
    "*",
    ">",
    `${mark}>`,
    `push.evt.v1.${mark}.>`,
    `${mark}.>.x`,
    `.${mark}.`,
    ".",
    "..",
  ],
  ...[
    `$JS.API.STREAM.DELETE.${mark}`,
    `$SYS.${mark}.>`,
    `$KV.push_tokens.${mark}`,
    `_INBOX.${mark}`,
    `$JS.ACK.${mark}`,
  ],
  ...[
    ` ${mark}`,
    `${mark} `,
    `${mark} a`,
    " ",
    `${mark}\ta`,
    `${mark}\ra`,
    `${mark}\na`,
    `${mark}\r\nPUB a 1\r\nx`,
    `${mark}\0a`,
  ],
  ...[
    `${mark}é`,
    `${mark}名前`,
    `${mark}🐢`,
    `${mark}\u202e`,
    `${mark}\u200b`,
    `${mark}．a`,
    `${mark}＊`,
    `\ud800${mark}`,
  ],
  ...["", `${mark}${"x".repeat(256)}`, `${mark}${"x".repeat(10_000)}`, `${mark}/../a`, `${mark}%2e%00`, `${mark}\\a`],
  ...[
    `__proto__`,
    "constructor",
    "toString",
    `all`,
    `dev_${mark}`,
    `top_${mark}`,
    `prj_${mark}`,
    `prj_06bq4ghm31tz5d2ns8y7k9w0ac.${mark}`,
  ],
  ...[
    `${mark}"a`,
    `${mark}'a`,
    `${mark}{a}`,
    `${mark}:a`,
    `${mark},a`,
    `${mark}=a`,
    `${mark};a`,
    `${mark}|a`,
    `-${mark}`,
    `~${mark}`,
  ],
];

/** A name in a path. Lone surrogates, which a path cannot contain, are replaced. */
const encoded = (name: string) => encodeURIComponent(name.toWellFormed());

/** Every place in which a caller may give a name: the call, and its allowed answers. */
const places: Record<
  string,
  (name: string) => { route: string; body?: unknown; admin?: true; headers?: Record<string, string> }
> = {
  "a project's name": (name) => ({ route: "POST /projects", admin: true, body: { project: { name } } }),
  "a token's name": (name) => ({
    route: `POST /projects/${world.project.id}/tokens`,
    admin: true,
    body: { token: { name } },
  }),
  "a project in a path": (name) => ({ route: `GET /projects/${encoded(name)}`, admin: true }),
  "a provider in a path": (name) => ({
    route: `GET /projects/${world.project.id}/providers/${encoded(name)}`,
    admin: true,
  }),
  "a durable": (name) => ({ route: `GET /dead-letters?durable=${encoded(name)}`, admin: true }),
  "a dead letter": (name) => ({ route: `POST /dead-letters/${encoded(name)}/replay`, admin: true }),
  "a topic's name": (name) => ({ route: "POST /topics", body: { topic: { name } } }),
  "a topic in a path": (name) => ({ route: `GET /topics/${encoded(name)}` }),
  "a topic made by its subscription": (name) => ({
    route: `PUT /topics/${encoded(name)}/devices`,
    body: { devices: [world.device.id] },
  }),
  "a topic of a device": (name) => ({ route: `PUT /devices/${world.device.id}/topics/${encoded(name)}` }),
  "a topic that goes": (name) => ({ route: `DELETE /topics/${encoded(name)}` }),
  "topics of a registration": (name) => ({
    route: "POST /devices",
    body: { device: { token: apnsToken(), platform: "ios", topics: [name] } },
  }),
  "a push token": (name) => ({ route: "POST /devices", body: { device: { token: name, platform: "android" } } }),
  "an identifier and metadata": (name) => ({
    route: `PATCH /devices/${world.device.id}`,
    body: { device: { identifiers: { alias: name }, metadata: { [name]: name } } },
  }),
  "a device in a path": (name) => ({ route: `GET /devices/${encoded(name)}` }),
  "a device to subscribe": (name) => ({ route: `PUT /topics/${world.topic.id}/devices`, body: { devices: [name] } }),
  "a push type": (name) => ({
    route: `PUT /devices/${world.device.id}/tokens/${encoded(name)}`,
    body: { token: { token: apnsToken() } },
  }),
  "a control": (name) => ({
    route: `PUT /devices/${world.device.id}/tokens/controls/${encoded(name)}`,
    body: { token: { token: apnsToken() } },
  }),
  "an app, a push type and a control of a send": (name) => ({
    route: "POST /notifications",
    body: { notification: { targets: [world.device.id], app: name, push_type: "controls", push_name: name } },
  }),
  "the app of a device": (name) => ({
    route: "POST /devices",
    body: { device: { token: apnsToken(), platform: "ios", app: name } },
  }),
  "a target": (name) => ({ route: "POST /notifications", body: { notification: { title: "x", targets: [name] } } }),
  "a topic as a target": (name) => ({
    route: "POST /notifications",
    body: { notification: { title: "x", targets: [`topic:${name}`, `metadata:alias=${name}`, `token:${name}`] } },
  }),
  "a collapse id": (name) => ({
    route: "POST /notifications",
    body: { notification: { title: "x", targets: [world.device.id], collapse_id: name } },
  }),
  "an idempotency key": (name) => ({
    route: "POST /notifications",
    body: { notification: { title: "x", targets: [world.device.id] } },
    headers: { "idempotency-key": name },
  }),
  "a request id": (name) => ({ route: "GET /devices", headers: { "x-request-id": name, traceparent: name } }),
  "a notification in a path": (name) => ({ route: `DELETE /notifications/${encoded(name)}` }),
  "a project in a body": (name) => ({
    route: "PUT /identification",
    body: { project_id: name, identifier: apnsToken(), platform: "ios" },
  }),
  "an open token": (name) => ({
    route: `PUT /notifications/${world.notification.id}/open`,
    body: { project_id: world.project.id, token: name },
  }),
  "the token of a receipt": (name) => ({
    route: `PUT /notifications/${world.notification.id}/received`,
    body: { project_id: world.project.id, token: name },
  }),
  "a button of an open": (name) => ({
    route: `PUT /notifications/${world.notification.id}/open`,
    body: { project_id: world.project.id, token: world.openToken, button: name },
  }),
  "a button": (name) => ({
    route: "POST /notifications",
    body: { notification: { title: "x", targets: [world.device.id], buttons: [{ id: name, title: name }] } },
  }),
  "a capability": (name) => ({
    route: "PUT /identification",
    body: { project_id: world.project.id, identifier: apnsToken(), platform: "ios", capabilities: [name] },
  }),
  "types of events": (name) => ({ route: `GET /events?types=${encoded(name)}` }),
  "events of a webhook": (name) => ({
    route: "POST /webhooks",
    body: { webhook: { url: "https://a.example/", events: [name] } },
  }),
  "a topic of statistics": (name) => ({ route: `GET /stats?topic=${encoded(name)}` }),
};

/** Checks a subject: each token must be the broker's, a word of the contracts, or an id that Herald generated. */
function problemOf(subject: string, projects: ReadonlySet<string>): string | undefined {
  if (subject.includes(mark)) return "has a caller's name in it";
  // `_R_` is the broker's prefix for replies across accounts.
  if (/^(\$JS\.|_INBOX_|_INBOX\.|\$JSC\.|_R_\.)/.test(subject)) return undefined;
  if (!/^[\x21-\x7e]+$/.test(subject)) return "is not visible ASCII";
  const [, bucket] = /^\$KV\.(\w+)\.[A-Za-z0-9_.=-]+$/.exec(subject) ?? [];
  if (bucket !== undefined) return bucket in buckets ? undefined : "is of no bucket";
  if (/^push\.req\.v1\.(registry|dispatch|analytics)\.[a-z-]+\.[A-Za-z0-9-]+$/.test(subject)) return undefined;
  const [, durable] = /^push\.dlq\.v1\.([a-z-]+)$/.exec(subject) ?? [];
  if (durable !== undefined) return durable in durables ? undefined : "is of no durable";
  if (/^push\.sched\.v1\.[A-Za-z0-9_-]+(\.\d+)?$/.test(subject)) return undefined;
  // Groups of sends of any projects, named after their first id.
  if (/^push\.send\.v1\.group\.ntf_[0-9a-z]{26}$/.test(subject)) return undefined;
  if (contractOf(subject) === undefined) return "is of no contract";
  // What operators do concerns the installation, whatever project it names.
  if (subject === `push.evt.v1.${installation}.audit.recorded`) return undefined;
  const project = subject.split(".").find((token) => token.startsWith("prj_"));
  return project !== undefined && projects.has(project) ? undefined : "is of no project that there is";
}

const projectsSoFar = async (): Promise<string[]> => {
  const { client, name } = system.registryDatabase;
  const all = await client.db(name).collection<{ _id: string }>("projects").find().project({ _id: 1 }).toArray();
  return all.map(({ _id }) => String(_id));
};

test("NATS wildcards and separators in every name are refused or encoded", async ({ task }) => {
  const watching = hands.watch();
  const statuses: Record<string, number> = {};
  const wrong: string[] = [];
  const all = Object.entries(places).flatMap(([place, call], column) =>
    names.map((name, row) => ({ place, name, call, half: (column + row) % 2 })),
  );
  // In a short run half of the names in each place, and each name in half of the places.
  const tried = all.filter(({ half }) => half < scale(2, 1));
  // Also those of earlier attacks on this system, of whom events may still come.
  const made = new Set<string>(await projectsSoFar());
  await inParallel(tried, 8, async ({ place, name, call }) => {
    const { route, admin, body, headers } = call(name);
    const [method, path] = route.split(" ");
    const answer = await request(system.gateway, `${method} ${admin ? "/admin/v1" : "/api/v1"}${path}`, {
      token: admin ? system.adminToken : world.project.token,
      ...(body === undefined ? {} : { body }),
      ...(headers && { headers }),
    }).catch((error: Error) => error);
    // The client does not send names that are invalid in an HTTP header.
    const status = answer instanceof Error ? "not sent" : answer.status;
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (answer instanceof Error && !headers) wrong.push(`${place} ${JSON.stringify(name)}: ${answer.message}`);
    if (typeof status === "number" && status >= 500) wrong.push(`${place} ${JSON.stringify(name)}: ${status}`);
    if (!(answer instanceof Error) && place === "a project's name" && status === 201)
      made.add(ProjectId.parse(answer.body.data.id));
  });
  expect(wrong).toEqual([]);
  // The end of its activity comes in hours.
  for (const one of await world.project.notifications())
    if (one.activity?.event !== "end") await world.project.final(one.id);
  await eventually(() => expect([...watching.seen].some((subject) => subject.startsWith("push.deliver."))).toBe(true));
  await watching.stop();
  const foreign = [...watching.seen].flatMap((subject) => {
    const problem = problemOf(subject, made);
    return problem === undefined ? [] : [`${subject.slice(0, 200)} ${problem}`];
  });
  expect(foreign).toEqual([]);
  const { id } = await world.project.send({ title: "As ever", targets: [world.device.id] });
  expect((await world.project.final(id)).counts.accepted).toBe(1);
  show(task, {
    names: names.length,
    places: Object.keys(places).length,
    "subjects seen": watching.seen.size,
    answered: Object.entries(statuses)
      .map(([status, count]) => `${count} × ${status}`)
      .join(", "),
  });
});

test("topics with special characters in their names work like others", async ({ task }) => {
  const lawful = ["__proto__", "constructor", "toString", "hasOwnProperty", "a.b", "a..b", "~", "-", "_", "0", "null"];
  await inParallel(lawful, 4, async (name) => {
    const project = await system.project("Lawful");
    const { device } = await project.register();
    const path = encoded(name).replaceAll(".", "%2E");
    expectStatus(await project.call("POST /topics", { body: { topic: { name } } }), 201);
    expectStatus(await project.call(`PUT /devices/${device.id}/topics/${path}`), 204);
    const { id } = await project.send({ title: "Hello", targets: [`topic:${name}`] });
    expect((await project.final(id)).counts, name).toMatchObject({ devices: 1, accepted: 1 });
    expect(expectStatus(await project.call(`GET /devices/${device.id}`), 200).body.data.topics).toEqual([name]);
    const now = new Date();
    const from = new Date(now.getTime() - 3_600_000).toISOString();
    const query = new URLSearchParams({ from, to: new Date(now.getTime() + 60_000).toISOString(), topic: name });
    await eventually(async () => {
      const { body } = expectStatus(await project.call(`GET /stats?${query}`), 200);
      expect(JSON.stringify(body.data), name).toContain('"totals":{"sent":1');
    });
    expectStatus(await project.call(`DELETE /topics/${path}`), 204);
  });
  show(task, { names: lawful.length });
});
