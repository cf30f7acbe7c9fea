import { expectStatus, type HttpAnswer, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apnsToken, type Project } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { cpuMs } from "./cpu-time.ts";
import { show } from "./figures.ts";

const max = 64;
const quota = 30;
const perHour = 20;

let system: System;
beforeAll(async () => {
  system = await startSystem({
    env: {
      HERALD_REGISTRY_QUOTA_DEVICES: String(quota),
      HERALD_GATEWAY_LIMIT_NEW_DEVICES: String(perHour),
      HERALD_GATEWAY_TRUST_PROXY: "1",
    },
  });
});
afterAll(() => system?.stop());
logOnFailure(() => system);

let addresses = 0;
/** Each test has addresses of its own. */
const newAddress = (): string => `203.0.113.${++addresses}`;

const identify = (project: Project, body: object, address = newAddress()): Promise<HttpAnswer> =>
  request(system.gateway, "PUT /api/v1/identification", {
    headers: { "x-forwarded-for": address },
    body: { project_id: project.id, platform: "ios", identifier: apnsToken(), ...body },
  });

/** As many single values as fit into 16 KiB. */
const values = (keys: number): Record<string, Record<string, number>> =>
  Object.fromEntries(
    Array.from({ length: keys }, (_, outer) => [
      `k${outer}`,
      Object.fromEntries(Array.from({ length: 64 }, (_, inner) => [inner.toString(36), 1])),
    ]),
  );
const flat = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));

const collection = () => {
  const { client, name } = system.registryDatabase;
  return client.db(name).collection<{ _id: string; projectId: string; facets: string[] }>("devices");
};
const entries = async (project: Project) =>
  (await collection().find({ projectId: project.id }).toArray()).reduce((sum, { facets }) => sum + facets.length, 0);

test("an anonymous registration adds few index entries", async ({ task }) => {
  const project = await system.project("Facets");
  const address = newAddress();
  const body = { metadata: values(39), identifiers: values(39) };
  const bytes = JSON.stringify(body).length;
  const before = await cpuMs(system);
  const tries = 10;
  for (let n = 0; n < tries; n++) {
    const { status, text } = await identify(project, body, address);
    expect(status, text).toBe(422);
  }
  const spent = (await cpuMs(system)) - before;
  expect(await entries(project)).toBe(0);
  show(task, { "bytes sent": bytes, "index entries": 0, "CPU ms a request": Math.round(spent / tries) });
});

test("at most 64 topics and values of a device, on every route", async ({ task }) => {
  const project = await system.project("Doors");
  const register = (device: object) =>
    project.call("POST /devices", { body: { device: { token: apnsToken(), platform: "ios", ...device } } });
  const { data, credential } = expectStatus(
    await register({ metadata: flat(40), topics: Array.from({ length: 24 }, (_, n) => `t${n}`), user_id: "u" }),
    201,
  ).body;
  const over = [
    await register({ metadata: flat(60), identifiers: flat(5) }),
    await register({ metadata: flat(45), topics: Array.from({ length: 20 }, (_, n) => `t${n}`) }),
    await identify(project, { metadata: flat(33), identifiers: flat(32) }),
    await project.call(`PATCH /devices/${data.id}`, { body: { device: { metadata: { another: 1 } } } }),
    await project.call("PATCH /metadata", { body: { device_id: data.id, metadata: { another: 1 } } }),
    await request(system.gateway, "PATCH /api/v1/metadata", { token: credential, body: { metadata: { another: 1 } } }),
    await project.call(`PUT /devices/${data.id}/topics/another`),
    await request(system.gateway, `PUT /api/v1/devices/${data.id}/topics/another`, { token: credential }),
  ];
  expect(over.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422, 422, 422, 422]);
  for (const { text } of over) expect(text).toContain(`${max}`);
  const bulk = await project.call("PUT /topics/another/devices", { body: { devices: [data.id] } });
  expect(expectStatus(bulk, 200).body.data).toMatchObject({ changed: 0, unknown: [], full: [data.id] });
  // The device may still subscribe to its topics again, change its values and remove them.
  expectStatus(await project.call(`PUT /devices/${data.id}/topics/t1`), 204);
  expectStatus(
    await project.call(`PATCH /devices/${data.id}`, { body: { device: { metadata: { k1: "other" } } } }),
    200,
  );
  expectStatus(
    await project.call(`PATCH /devices/${data.id}`, { body: { device: { metadata: { k1: null, one: 1 } } } }),
    200,
  );
  expect(await entries(project)).toBe(max + 2); // beside its user and its time zone
  show(task, { routes: over.length + 1, "entries a device": max });
});

test("a device beyond the limit of values keeps them and gets no more", async ({ task }) => {
  const project = await system.project("Earlier");
  const { device, credential } = await project.register({ metadata: flat(60) });
  const more = Array.from({ length: 100 }, (_, n) => `t:earlier-${n}`);
  const topics = more.map((facet) => facet.slice(2));
  await collection().updateOne({ _id: device.id }, { $push: { facets: { $each: more } } } as never);
  const change = (metadata: object) =>
    request(system.gateway, "PATCH /api/v1/metadata", { token: credential, body: { metadata } });
  expect(expectStatus(await change({ k1: "other" }), 200).body.data.topics).toEqual(topics);
  expectStatus(await change({ k1: null }), 200);
  expectStatus(await identify(project, { identifier: device.token, metadata: { k2: "other" } }), 200);
  expectStatus(await change({ more: 1, evenMore: 2 }), 422);
  expect(await entries(project)).toBe(160); // with its time zone
  show(task, { "entries before": 161, "entries after": 160 });
});

test("without a credential, metadata and identifiers have 10 KiB each", async ({ task }) => {
  const project = await system.project("Bytes");
  const identifier = apnsToken();
  const text = (bytes: number) => "x".repeat(bytes);
  expectStatus(await identify(project, { identifier: apnsToken(), metadata: { text: text(10_240) } }), 422);
  expectStatus(await identify(project, { identifier: apnsToken(), identifiers: { text: text(10_240) } }), 422);
  const { credential } = expectStatus(await identify(project, { identifier, metadata: { a: text(6_000) } }), 201).body;
  const bit = { project_id: project.id, identifier, metadata: { b: text(6_000) } };
  expectStatus(await request(system.gateway, "PATCH /api/v1/metadata", { body: bit }), 422);
  expectStatus(await identify(project, { identifier, metadata: { b: text(6_000) } }), 422);
  // With the device's credential the usual limits apply.
  const proven = { token: credential, body: { metadata: { b: text(6_000) } } };
  expectStatus(await request(system.gateway, "PATCH /api/v1/metadata", proven), 200);
  expectStatus(await identify(project, { identifier, metadata: { a: "less" } }), 200);
  show(task, { "bytes without a credential": 10_240 });
});

test("new devices are limited per address and hour, and per project", async ({ task }) => {
  const project = await system.project("Quota");
  const address = newAddress();
  const tokens = Array.from({ length: perHour }, () => apnsToken());
  for (const identifier of tokens) expectStatus(await identify(project, { identifier }, address), 201);
  const late = expectStatus(await identify(project, {}, address), 429);
  expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(60);
  expect(late.body.errors.join()).toContain("new devices from this address");
  // Known phones still work from this address, and new phones from other addresses.
  for (const identifier of tokens.slice(0, 5)) expectStatus(await identify(project, { identifier }, address), 200);
  const others = Array.from({ length: quota - perHour }, () => identify(project, {}));
  for (const answer of await Promise.all(others)) expectStatus(answer, 201);
  const full = [
    await identify(project, {}),
    await project.call("POST /devices", { body: { device: { token: apnsToken(), platform: "ios" } } }),
  ];
  for (const answer of full) expect(expectStatus(answer, 403).text).toContain(`${quota}`);
  expectStatus(await identify(project, { identifier: tokens[0] }), 200);
  expect(await project.devices()).toHaveLength(quota);
  show(task, { "new devices an address and hour": perHour, "devices a project": quota });
});
