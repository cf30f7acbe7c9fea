import { createUserToken } from "@herald/client";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let stranger: Project;
let secret: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Preferences");
  stranger = await system.project("Stranger");
  secret = (await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} })).body.secret;
  await declare("offers", 201);
  await system.admin(`PUT /projects/${project.id}/kinds/alerts`, {
    body: { kind: { title: "Alerts", critical: true } },
  });
});
logOnFailure(() => system);

const declare = async (kind: string, ...statuses: number[]) =>
  expectStatus(
    await system.admin(`PUT /projects/${project.id}/kinds/${kind}`, { body: { kind: { title: "A kind" } } }),
    ...statuses,
  );
const put = (path: string, token: string, preferences: unknown) =>
  request(system.gateway, `PUT /api/v1/${path}/preferences`, { token, body: { preferences } });
const off = { kinds: { offers: false } };

test("one person cannot read or change what another has chosen", async ({ task }) => {
  const [ann, bob] = [await project.register({ user_id: "ann" }), await project.register({ user_id: "bob" })];
  const foreign = await stranger.register({ user_id: "ann" });
  const sign = (user: string, more = {}) => createUserToken(user, { project: project.id, secret, ...more });
  const [anns, bobs] = [await sign("ann"), await sign("bob")];
  const { token: sender } = (
    await system.admin(`POST /projects/${project.id}/tokens`, { body: { token: { name: "send", scopes: ["send"] } } })
  ).body;
  const attempts: Record<string, Promise<{ status: number }>> = {};
  for (const [what, path, token] of [
    ["the credential of another device", `devices/${ann.device.id}`, bob.credential ?? ""],
    ["the credential of a device of another project", `devices/${ann.device.id}`, foreign.credential ?? ""],
    ["the token of another project", `devices/${ann.device.id}`, stranger.token],
    ["a token that only sends", `devices/${ann.device.id}`, sender],
    ["a user token for a device", `devices/${ann.device.id}`, anns],
    ["another user's token", "users/ann", bobs],
    ["a device credential for a user", "users/ann", ann.credential ?? ""],
    ["a user token of another secret", "users/ann", await sign("ann", { secret: `${secret}x` })],
    ["a user token of another project", "users/ann", await sign("ann", { project: stranger.id })],
    ["a user token without a signature", "users/ann", anns.replace(/\.[^.]*$/, ".")],
    ["a user token with a claim that was changed", "users/ann", bobs.replace(/\.[^.]*\./, `.${anns.split(".")[1]}.`)],
    ["a token that only sends, for a user", "users/ann", sender],
  ] as const) {
    attempts[`PUT with ${what}`] = put(path, token, off);
    attempts[`GET with ${what}`] = request(system.gateway, `GET /api/v1/${path}/preferences`, { token });
  }
  const wrong: string[] = [];
  for (const [what, attempt] of Object.entries(attempts)) {
    const { status } = await attempt;
    if (![401, 403, 404, 422].includes(status)) wrong.push(`${what}: ${status}`);
  }
  expect(wrong).toEqual([]);
  const chosen = async (path: string) =>
    (await project.call(`GET /${path}/preferences`)).body.data.kinds.find(
      ({ kind }: { kind: string }) => kind === "offers",
    ).on;
  expect(await chosen("users/ann")).toBe(true);
  expect(await chosen(`devices/${ann.device.id}`)).toBe(true);
  expectStatus(await put("users/ann", anns, off), 200);
  expect(await chosen(`devices/${ann.device.id}`)).toBe(false);
  expect(await chosen("users/bob")).toBe(true);
  show(task, { attempts: Object.keys(attempts).length });
});

test("unexpected names and sizes of kinds are refused or bounded", async ({ task }) => {
  const names = ["__proto__", "constructor.name", "a/b", "..", "A", "a".repeat(65), "$ne", "a,-offers", "%00", " "];
  for (const name of names) await declare(encodeURIComponent(name), 404, 405, 422);
  await declare("constructor", 201);
  const { device, credential = "" } = await project.register({ user_id: "eve" });
  const path = `devices/${device.id}`;
  const bad: unknown[] = [
    { kinds: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`kind-${at}`, false])) },
    { kinds: { alerts: false } },
    { kinds: { unknown: false } },
    { kinds: { offers: "false" } },
    { kinds: { "offers,+alerts": true } },
    { kinds: ["offers"] },
    { kinds: null },
    { kinds: { offers: false }, quiet_hours: { from: "22:00", to: "07:00" } },
    {},
  ];
  for (const one of bad) expectStatus(await put(path, credential, one), 422);
  // JSON has the key; an object of JavaScript would not.
  const raw = await fetch(`${system.gateway}/api/v1/${path}/preferences`, {
    method: "PUT",
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
    body: '{"preferences":{"kinds":{"__proto__":false,"toString":true}}}',
  });
  expect(raw.status).toBeLessThan(500);
  for (const hours of [
    { from: "24:00", to: "07:00" },
    { from: "07:00", to: "07:00" },
    { from: "22:00" },
    "22:00-07:00",
  ])
    expectStatus(await put("users/eve", project.token, { kinds: {}, quiet_hours: hours }), 422);
  expectStatus(await put(path, credential, { kinds: { constructor: false, alerts: true } }), 200);
  const { id } = await project.send({ title: "Hello", kind: "constructor", targets: [`device:${device.id}`] });
  expect((await project.final(id)).skips).toEqual({ muted: 1 });
  show(task, { names: names.length, bodies: bad.length });
});

test("at most a hundred kinds; of thousands of changes the last one counts", async ({ task }) => {
  const counts = new Map<number, number>();
  const [kinds, changes] = [scale(300, 110), scale(2_000, 40)];
  await inParallel(
    Array.from({ length: kinds }, (_, at) => at),
    20,
    async (at) => {
      const { status } = await system.admin(`PUT /projects/${project.id}/kinds/kind-${at}`, {
        body: { kind: { title: "A kind" } },
      });
      counts.set(status, (counts.get(status) ?? 0) + 1);
    },
  );
  expect([...counts.keys()].sort()).toEqual([201, 409]);
  const { device } = await project.register({ user_id: "fickle" });
  await inParallel(
    Array.from({ length: changes }, (_, at) => at),
    20,
    async (at) => {
      expectStatus(await put("users/fickle", project.token, { kinds: { offers: at % 2 === 0 } }), 200);
    },
  );
  expectStatus(await put("users/fickle", project.token, off), 200);
  await eventually(async () => {
    const { id } = await project.send({ title: "Hello", kind: "offers", targets: [`device:${device.id}`] });
    expect((await project.final(id)).skips).toEqual({ muted: 1 });
  });
  show(task, { kinds, changes: changes + 1 });
});
