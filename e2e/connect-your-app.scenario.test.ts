import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import { Herald } from "../examples/react-native/herald.ts";
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
const deviceOf = async (user: string) => (await project.call(`GET /users/${user}`)).body.data?.devices[0];

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

test("the file for React Native registers, rotates, logs in and out, subscribes and reports", async () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: async (key: string) => kept.get(key) ?? null,
    setItem: async (key: string, value: string) => void kept.set(key, value),
  };
  const options = { project: project.id, platform: "android", locale: "pt-BR", storage } as const;
  const offline = new Herald({ ...options, gateway: "http://127.0.0.1:9" });
  const herald = new Herald({ ...options, gateway: system.gateway });
  const [first, second] = [androidToken(), androidToken()];

  // The app starts without a network, and no change is lost.
  expect(await offline.register(first)).toEqual([]);
  expect(await offline.login(userToken("u-native"))).toEqual([]);
  expect(await offline.subscribe("news")).toEqual([]);
  expect(await herald.settle()).toEqual([]);
  const device = await deviceOf("u-native");
  expect(device).toMatchObject({ token: first, topics: ["news"], identifiers: { current_locale: "pt-BR" } });

  expect(await herald.register(second)).toEqual([]);
  expect(await deviceOf("u-native")).toMatchObject({ id: device.id, token: second });
  expect(await herald.subscribe("no-such-topic")).toEqual([expect.stringMatching(/topic/)]);
  expect(await herald.login("not.a.token")).toEqual([expect.stringMatching(/user_token/)]);

  const sent = await project.send({ title: "Hello", link_to: "/inbox", targets: ["user:u-native"] });
  await project.final(sent.id);
  const [push] = await system.simulators.pushes({ token: second });
  if (!push) throw new Error("no push arrived");
  await offline.opened(payloadOf(push));
  await herald.settle();
  expect(await herald.opened({})).toEqual([]);
  await eventually(async () => expect((await project.notification(sent.id)).counts.opened).toBe(1));

  await offline.logout();
  await herald.unsubscribe("news");
  expect((await project.call(`GET /devices/${device.id}`)).body.data).toMatchObject({ user_id: null, topics: [] });

  // The backend deletes the device.
  await project.call(`DELETE /devices/${device.id}`);
  await herald.subscribe("news");
  await herald.login(userToken("u-native"));
  const again = await deviceOf("u-native");
  expect(again).toMatchObject({ token: second, topics: ["news"] });
  expect(again.id).not.toBe(device.id);
});

describe("the files of other languages", async () => {
  const { paths, components } = JSON.parse(await readFile(join(root, "docs/reference/openapi.json"), "utf8"));
  const fits = (path: string, pattern: string) =>
    new RegExp(`^${pattern.replace("/api/v1", "").replaceAll(/\{\w+\}/g, "\\{\\}")}$`).test(path);
  const bodies: Record<string, readonly string[]> = {
    "PUT /identification": Object.keys(components.schemas.Identification.properties),
  };
  const files = ["react-native", "flutter"].map((folder) => join(root, "examples", folder));

  test.each(files)("%s calls existing routes with their fields", async (folder) => {
    const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")));
    const source = texts.join("\n");
    // Calls with `path` are calls for topics.
    const calls = [...source.matchAll(/["'](PUT|PATCH|DELETE)["'],\s*(?:(["'`])(\/.*?)\2|path)/g)].map(
      ([, method, , path = "/devices/{}/topics/{}"]) =>
        `${method} ${path.replaceAll(/\\\([^)]*\)+|\$\{[^}]*\}+|\$\w+/g, "{}")}`,
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
    const sent = ["project_id", "platform", "identifier", "previous_identifier", "identifiers"];
    expect(bodies["PUT /identification"]).toEqual(expect.arrayContaining(sent));
    for (const field of [...sent, "user_token", "token", "credential"]) expect(source).toContain(field);
    expect(components.schemas.OpenNotification.properties).toMatchObject({ project_id: {}, token: {} });
    expect(components.schemas.ChangeDevice.properties.device.properties).toHaveProperty("user_token");
  });
});
