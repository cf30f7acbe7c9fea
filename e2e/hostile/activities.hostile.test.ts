import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let stranger: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Orders");
  stranger = await system.project("Stranger");
});
logOnFailure(() => system);

const app = "com.example.e2e";
const type = "OrderAttributes";
const base = (targets: readonly string[], more: object = {}) => ({
  ...{ attributes_type: type, attributes: {}, content_state: { n: 1 }, start: false, targets, ...more },
});
/** The states that a card showed after the app's own. A join beside the activity's first send may push the same state twice. */
const shown = async (token: string) =>
  (await system.simulators.instances(token)).flatMap((card) =>
    card.shown.slice(1).map(({ contentState }) => (contentState as { n: unknown }).n),
  );

/** A device with a card of an activity. */
const follower = async (of: Project, id: string) => {
  const { device, credential = "" } = await of.register();
  const token = (await system.simulators.startInstance(app, type)).token ?? "";
  const follow = (activity: string, more: { token?: string; as?: string; device?: string } = {}) =>
    request(system.gateway, `PUT /api/v1/devices/${more.device ?? device.id}/tokens/activity/${activity}`, {
      token: more.as ?? credential,
      body: { token: { token: more.token ?? token } },
    });
  expectStatus(await follow(id), 204);
  return { id: device.id as string, credential, pushToken: device.token as string, token, follow };
};

test("a foreign project, device or guessed id gets and changes nothing", async ({ task }) => {
  const id = "order-1";
  const victim = await follower(project, id);
  expectStatus(await project.call(`PUT /activities/${id}`, { body: { activity: base([victim.id]) } }), 202);
  await eventually(async () => expect(await shown(victim.token)).toEqual([1]));

  const eve = await follower(project, "order-of-eve");
  const foreign = await follower(stranger, id);
  const state = { activity: { content_state: { n: "stolen" } } };
  const call = (route: string, token: string, body?: unknown) =>
    request(system.gateway, route.replace(" ", " /api/v1"), { token, ...(body !== undefined && { body }) });
  const { token: reader } = (
    await system.admin(`POST /projects/${project.id}/tokens`, { body: { token: { name: "read", scopes: ["read"] } } })
  ).body;
  const attempts: [string, Promise<{ status: number }>][] = [];
  for (const [who, token] of [
    ["another project", stranger.token],
    ["a device of another project", foreign.credential],
    ["another device", eve.credential],
    ["the device itself", victim.credential],
    ["a token that only reads", reader],
    ["a stranger", "no-such-token"],
  ] as const) {
    attempts.push([`PATCH by ${who}`, call(`PATCH /activities/${id}`, token, state)]);
    attempts.push([`end by ${who}`, call(`POST /activities/${id}/end`, token, state)]);
    if (who === "another project") continue;
    attempts.push([`PUT by ${who}`, call(`PUT /activities/new`, token, { activity: base([victim.id]) })]);
  }
  for (const [who, device, token] of [
    ["another project", victim.id, stranger.token],
    ["a device of another project", victim.id, foreign.credential],
    ["another device", victim.id, eve.credential],
    ["a device that is no target", eve.id, eve.credential],
    ["a device of the same name elsewhere", foreign.id, foreign.credential],
  ] as const)
    attempts.push([`GET by ${who}`, call(`GET /devices/${device}/activities/${id}`, token)]);
  attempts.push(["GET of the record by another project", call(`GET /activities/${id}`, stranger.token)]);
  // Somebody else's token, for an activity of one's own and for theirs.
  attempts.push(["a stolen token", eve.follow("order-of-eve", { token: victim.token })]);
  attempts.push(["a stolen token under the same id", eve.follow(id, { token: victim.token })]);
  attempts.push(["a token for another device", eve.follow(id, { device: victim.id })]);
  attempts.push(["a token by another project", eve.follow(id, { device: victim.id, as: stranger.token })]);
  const wrong: string[] = [];
  for (const [what, attempt] of attempts) {
    const { status } = await attempt;
    if (status < 400 || status >= 500) wrong.push(`${what}: ${status}`);
  }
  expect(wrong).toEqual([]);

  // What is allowed reaches nothing either: a guessed id, an id of one's own in another project, and its targets.
  expectStatus(await eve.follow(id), 204);
  expectStatus(await call(`PUT /activities/${id}`, stranger.token, { activity: base([victim.id, "all"]) }), 202);
  await eventually(async () => expect(await shown(foreign.token)).toEqual([1]));
  expectStatus(await call(`PATCH /activities/${id}`, stranger.token, state), 202);
  await eventually(async () => expect(await shown(foreign.token)).toEqual([1, "stolen"]));
  expectStatus(await project.call(`PATCH /activities/${id}`, { body: { activity: { content_state: { n: 2 } } } }), 202);
  await eventually(async () => expect(await shown(victim.token)).toEqual([1, 2]));
  expect(await shown(eve.token)).toEqual([]);
  expect((await project.call(`GET /activities/${id}`)).body.data).toMatchObject({
    version: 2,
    content_state: { n: 2 },
  });
  show(task, { attempts: attempts.length, pushes: 0 });
});

test("ids and bodies with special meaning are refused", async ({ task }) => {
  const target = await follower(project, "order-2");
  const ids = [
    "a\r\nb",
    "a\r\nNats-Rollup: sub",
    "__proto__",
    "*",
    ">",
    "a.b",
    "$KV",
    "a b",
    "ä",

    "x".repeat(65),
    "\0",
  ];
  const wrong: string[] = [];
  const isRefused = (what: string, { status }: { status: number }) => {
    if (status < 400 || status >= 500) wrong.push(`${JSON.stringify(what.slice(0, 60))}: ${status}`);
  };
  for (const id of ids) {
    const path = encodeURIComponent(id);
    isRefused(`PUT ${id}`, await project.call(`PUT /activities/${path}`, { body: { activity: base([target.id]) } }));
    const state = { activity: { content_state: {} } };
    isRefused(`PATCH ${id}`, await project.call(`PATCH /activities/${path}`, { body: state }));
    isRefused(`end ${id}`, await project.call(`POST /activities/${path}/end`, { body: { activity: {} } }));
    isRefused(`GET ${id}`, await project.call(`GET /activities/${path}`));
    isRefused(`token ${id}`, await target.follow(path));
    isRefused(`GET of a device ${id}`, await project.call(`GET /devices/${target.id}/activities/${path}`));
  }
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const bodies: Record<string, string> = {
    "__proto__ in the state": JSON.stringify(base([target.id])).replace('"n":1', '"__proto__":{"n":1}'),
    "__proto__ further down": JSON.stringify(base([target.id])).replace('"n":1', '"a":[{"__proto__":1}]'),
    "__proto__ beside the state": JSON.stringify(base([target.id])).replace("{", '{"__proto__":{"start":true},'),
    "a state of 5,000 levels": JSON.stringify(base([target.id])).replace('{"n":1}', deep(5_000)),
    "a type with a line break": JSON.stringify(base([target.id], { attributes_type: "Order\r\nx: y" })),
    "an app with a line break": JSON.stringify(base([target.id], { app: "com.example\r\nx: y" })),
    "herald's own attributes": JSON.stringify(base([target.id], { attributes: { herald: { token: "x" } } })),
    "a target of the broker": JSON.stringify(base(["user:>", "topic:*"])),
    "a sound that is a path": JSON.stringify(base([target.id], { alert: { title: "x", body: "y", sound: 1 } })),
    "an end in the year 10000": JSON.stringify(base([target.id], { ends_at: "10000-01-01T00:00:00Z" })),
  };
  for (const [what, activity] of Object.entries(bodies))
    isRefused(what, await project.call("PUT /activities/order-2", { body: `{"activity":${activity}}` }));
  expect(wrong).toEqual([]);
  expectStatus(await project.call("GET /activities/order-2"), 404);
  // The last request, so all that came before has been handled.
  const { id } = await project.send({ title: "Last", targets: [target.id] });
  await project.final(id);
  const [first, ...others] = await system.simulators.pushes({ token: target.pushToken });
  expect([first && payloadOf(first).notification_id, others]).toEqual([id, []]);
  expect(await system.simulators.pushes({ token: target.token })).toEqual([]);
  show(task, { ids: ids.length, bodies: Object.keys(bodies).length, pushes: 0 });
});
