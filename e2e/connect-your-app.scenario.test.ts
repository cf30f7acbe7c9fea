import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, expectStatus, faultyProxy } from "@herald/testing";
import { expect } from "vitest";
import { createDevice } from "../packages/react-native/src/device.ts";
import type { Store } from "../packages/react-native/src/state.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { shellBlocks } from "./harness/shell-blocks.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { claimsOf, hs256, nowSeconds } from "./harness/user-tokens.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");

let system: System;
let project: Project;
let secret: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Apps", ["apns", "fcm"]);
  expectStatus(await project.call("POST /topics", { body: { topic: { name: "news" } } }), 201);
  const created = await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} });
  secret = expectStatus(created, 201).body.secret;
});
logOnFailure(() => system);

/** Each token is issued a second later than the previous one. */
let made = 0;
const userToken = (user: string): string => {
  made += 1;
  return hs256(secret, { claims: claimsOf(project.id, user, { iat: nowSeconds() - 30 + made }) });
};
const androidToken = () => `android:${apnsToken()}`;

test("the page's calls work as written", async () => {
  const page = await readFile(join(root, "docs/how-to/connect-your-app.md"), "utf8");
  const [definitions = ""] = shellBlocks(page, "Before you begin");
  const variables: Record<string, string> = {
    gateway: system.gateway,
    project: project.id,
    push_token: androidToken(),
    new_push_token: androidToken(),
    user_token: userToken("u-page"),
  };
  const follow = async (heading: string) => {
    const script = [definitions, ...shellBlocks(page, heading)].join("\n");
    const { stdout } = await run("sh", ["-e", "-c", script], { env: { ...process.env, ...variables } });
    return stdout === "" ? undefined : JSON.parse(stdout);
  };
  const { data, credential } = await follow("Register");
  Object.assign(variables, { device: data.id, credential });
  expect(await follow("Rotate")).toMatchObject({ data: { id: data.id } });
  expect(await follow("Log in")).toMatchObject({ data: { id: data.id, user_id: "u-page" } });
  expect(await follow("Topics")).toBeUndefined();

  const sent = await project.send({ title: "Hello", targets: ["user:u-page"] });
  await project.final(sent.id);
  const pushes = await system.simulators.pushes({ token: variables.new_push_token ?? "" });
  const payload = pushes.map(payloadOf).find(({ notification_id }) => notification_id === sent.id);
  Object.assign(variables, { notification_id: sent.id, open_token: payload?.token });
  expect(await follow("Report the open")).toBeUndefined();
  expect(await follow("Log out")).toBeUndefined();
  const after = await project.call(`GET /devices/${data.id}`);
  expect(after.body.data).toMatchObject({ user_id: null, topics: ["news"], token: variables.new_push_token });
});

/** The storage of a phone, and the processes of an app on it. */
const phone = (gateway: string) => {
  const kept = new Map<string, string>();
  const storeOf = (key: string): Store => ({
    get: async () => kept.get(key) ?? null,
    set: async (value) => void kept.set(key, value),
  });
  const identifiers = { current_locale: "pt-BR", current_time_zone: "America/Sao_Paulo" };
  const startApp = () =>
    createDevice({
      gateway,
      project: project.id,
      secrets: storeOf("secrets"),
      store: storeOf("state"),
      data: () => ({ platform: "ios", identifiers }),
    });
  return { kept, startApp };
};

test("the kit for React Native registers, rotates, logs in and out, subscribes and reports", async () => {
  const network = await faultyProxy(system.gateway);
  const { kept, startApp } = phone(network.url);
  const herald = startApp();
  const [first, second] = [apnsToken(), apnsToken()];
  const userOf = (user: string) => project.call(`GET /users/${user}`).then(({ body }) => body.data?.devices[0]);

  // The app starts without a network, and no change is lost.
  await network.cut();
  expect(await herald.register(first)).toMatchObject({ device: null, pending: true, problem: { slug: "offline" } });
  await herald.login(userToken("u-native"));
  await herald.topics.add("news");
  await network.heal();
  expect(await herald.settle()).toMatchObject({ user: "u-native", topics: ["news"], pending: false, problem: null });
  const device = await userOf("u-native");
  expect(device).toMatchObject({ token: first, topics: ["news"], identifiers: { current_locale: "pt-BR" } });
  expect([...kept.values()].join()).not.toContain("eyJ");

  expect(await herald.register(second)).toMatchObject({ device: device.id, pending: false });
  expect(await userOf("u-native")).toMatchObject({ id: device.id, token: second });
  expect(await herald.topics.add("no-such-topic")).toMatchObject({ topics: ["news"], problem: { retry: false } });
  expect(await herald.login("not.a.token")).toMatchObject({ user: "u-native", problem: { status: 403 } });
  // The app becomes active, and has nothing to send.
  expect(await herald.settle()).toMatchObject({ problem: { status: 403 } });

  const sent = await project.send({ title: "Hello", link_to: "/inbox", targets: ["user:u-native"] });
  await project.final(sent.id);
  const [push] = await system.simulators.pushes({ token: second });
  if (!push) throw new Error("no push arrived");
  await network.cut();
  expect(await herald.open(payloadOf(push))).toMatchObject({ pending: true });
  await network.heal();
  // The app's next process sends what the last one kept.
  const next = startApp();
  expect(await next.settle()).toMatchObject({ device: device.id, pending: false, problem: null });
  await eventually(async () => expect((await project.notification(sent.id)).counts.opened).toBe(1));
  expect(await next.open({})).toMatchObject({ pending: false });

  expect(await next.logout()).toMatchObject({ user: null, pending: false });
  await next.topics.remove("news");
  expect((await project.call(`GET /devices/${device.id}`)).body.data).toMatchObject({ user_id: null, topics: [] });

  // The backend deletes the device.
  await project.call(`DELETE /devices/${device.id}`);
  await next.topics.add("news");
  await next.login(userToken("u-native"));
  const again = await userOf("u-native");
  expect(again).toMatchObject({ token: second, topics: ["news"] });
  expect(again.id).not.toBe(device.id);
  await network.stop();
});

test("a device of React Native without a user switches a kind off, and nothing is kept while offline", async () => {
  for (const [name, kind] of Object.entries({ offers: { title: "Offers" }, tips: { title: "Tips" } }))
    expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/${name}`, { body: { kind } }), 201);
  const network = await faultyProxy(system.gateway);
  const herald = phone(network.url).startApp();
  expect(await herald.preferences.get()).toMatchObject({
    kinds: [],
    problem: { slug: "not-registered", retry: false },
  });
  expect(await herald.credential()).toBeNull();
  const { device } = await herald.register(apnsToken());
  const usual = { title: "Offers", on: true, critical: false, set_by: "default" };
  expect((await herald.preferences.get()).kinds[0]).toEqual({ kind: "offers", ...usual });
  await Promise.all([herald.preferences.set({ offers: false }), herald.preferences.set({ tips: false })]);
  expect((await herald.preferences.get()).kinds.map(({ on, set_by }) => [on, set_by])).toEqual([
    [false, "device"],
    [false, "device"],
  ]);
  const refused = await herald.preferences.set({ nonsense: false });
  expect(refused).toMatchObject({ kinds: [], problem: { status: 422, retry: false } });
  expect(refused.problem?.message).toContain("preferences.kinds.nonsense: the project declares no such kind");
  const sent = await project.send({ title: "Half price", kind: "offers", targets: [`device:${device}`] });
  expect(await project.final(sent.id)).toMatchObject({ skips: { muted: 1 } });

  // What the app calls by itself.
  const authorization = `Bearer ${await herald.credential()}`;
  const own = await fetch(`${system.gateway}/api/v1/devices/${device}/preferences`, { headers: { authorization } });
  expect(((await own.json()) as { data: { kinds: unknown[] } }).data.kinds).toHaveLength(2);

  await network.cut();
  expect(await herald.preferences.set({ offers: true })).toMatchObject({ kinds: [], problem: { slug: "offline" } });
  await network.heal();
  expect((await herald.preferences.get()).kinds[0]).toMatchObject({ on: false });
  // The backend deletes the device: the kit registers it again, and the new one has chosen nothing.
  await project.call(`DELETE /devices/${device}`);
  expect((await herald.preferences.get()).kinds[0]).toMatchObject({ on: true });
  await network.stop();
});

test("the example for Flutter calls existing routes with their fields", async () => {
  const { paths, components } = JSON.parse(await readFile(join(root, "docs/reference/openapi.json"), "utf8"));
  const fits = (path: string, pattern: string) =>
    new RegExp(`^${pattern.replace("/api/v1", "").replaceAll(/\{\w+\}/g, "\\{\\}")}$`).test(path);
  const folder = join(root, "examples/flutter/lib");
  const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")));
  const source = texts.join("\n");
  const calls = [...source.matchAll(/'(PUT|PATCH|DELETE)', '(\/.*?)'/g)].map(
    ([, method, path = ""]) => `${method} ${path.replaceAll(/\$\{[^}]*\}+|\$\w+/g, "{}")}`,
  );
  expect(new Set(calls)).toEqual(
    new Set([
      "PUT /identification",
      "PATCH /devices/{}",
      "DELETE /devices/{}/user",
      "PUT /devices/{}/topics/{}",
      "DELETE /devices/{}/topics/{}",
      "PUT /notifications/{}/open",
    ]),
  );
  for (const call of new Set(calls)) {
    const [method = "", path = ""] = call.split(" ");
    const found = Object.entries<Record<string, unknown>>(paths).find(([pattern]) => fits(path, pattern));
    expect(found?.[1][method.toLowerCase()], call).toBeDefined();
  }
  const { Identification, OpenNotification, ChangeDevice } = components.schemas;
  const known = Object.keys({
    ...Identification.properties,
    ...OpenNotification.properties,
    ...ChangeDevice.properties.device.properties,
    device: {},
    current_locale: {},
    current_time_zone: {},
  });
  /** Every field of a body: `'name': value` in a map. */
  const fields = [...source.matchAll(/'(\w+)': /g)].map(([, name]) => name);
  expect(new Set(fields).size).toBeGreaterThan(8);
  expect([...new Set(fields)].filter((name) => name === undefined || !known.includes(name))).toEqual([]);
});
