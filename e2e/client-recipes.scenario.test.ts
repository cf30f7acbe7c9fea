import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { codeBlocks } from "./harness/shell-blocks.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
let page: string;
let system: System;
let project: Project;
let secret: string;
let folder: string;

/** Writes a file with the page's first block and a recipe, next to the published package. */
const recipe = async (heading: string): Promise<string> => {
  const file = join(folder, `${heading.toLowerCase().replaceAll(/\W+/g, "-")}.ts`);
  await writeFile(file, [...codeBlocks(page, "Start", "ts"), ...codeBlocks(page, heading, "ts")].join("\n"));
  return file;
};

const environment = () => ({
  PATH: process.env.PATH,
  HERALD_URL: system.gateway,
  HERALD_TOKEN: project.token,
  HERALD_ADMIN_TOKEN: system.adminToken,
  HERALD_PROJECT: project.id,
  HERALD_IDENTITY_SECRET: secret,
});

/** Runs a recipe and returns the lines that it prints. */
const follow = async (heading: string, variables: Record<string, string> = {}): Promise<string[]> => {
  const env = { ...environment(), ...variables };
  const { stdout } = await run(process.execPath, [await recipe(heading)], { env, timeout: 90_000 });
  return stdout.trim().split("\n");
};

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  folder = join(system.folder, "backend");
  await mkdir(join(folder, "node_modules/@herald/client"), { recursive: true });
  await symlink(join(root, "node_modules/@types"), join(folder, "node_modules/@types"));
  const build = ["--conditions=@herald/source", join(root, "infra/release/package.ts"), "client"];
  await run(process.execPath, [...build, join(folder, "node_modules/@herald/client")]);
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  page = await readFile(join(root, "packages/client/README.md"), "utf8");
  project = await system.project("Recipes");
  await project.register({ topics: ["news"], user_id: "u-17" });
  const keys = await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} });
  secret = expectStatus(keys, 201).body.secret;
});
logOnFailure(() => system);

test("every recipe type-checks", async () => {
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
  const recipes = headings.filter((heading) => heading !== "Start" && codeBlocks(page, heading, "ts").length > 0);
  const files = await Promise.all(recipes.map(recipe));
  expect(files.length).toBeGreaterThan(10);
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2023", "--types", "node"];
  const tsc = run(join(root, "node_modules/.bin/tsc"), [...options, ...files], { cwd: folder });
  expect(await tsc.catch(({ stdout }) => ({ stdout }))).toMatchObject({ stdout: "" });
});

const ntf = /^ntf_\w{26}$/;

test("a send to a topic reaches its subscriber", async () => {
  const [line = ""] = await follow("Send to everyone who reads the news");
  const [id = "", status] = line.split(" ");
  expect(status).toBe("accepted");
  expect((await project.final(id)).counts).toMatchObject({ devices: 1, accepted: 1 });
});

test("waiting for completion ends with the counts", async () => {
  expect(await follow("Wait until every device has it")).toEqual(["completed 1 of 1 devices"]);
});

test("a dry run counts, and sends nothing", async () => {
  const before = (await project.notifications()).length;
  expect(await follow("Count the audience first")).toEqual(["1 devices; without devices: topic:empty"]);
  expect(await project.notifications()).toHaveLength(before);
});

test("a batch under one key has one effect, however often it is sent", async () => {
  const ids = await follow("Send many different notifications");
  expect(ids).toEqual([expect.stringMatching(ntf), expect.stringMatching(ntf)]);
  expect(await follow("Send many different notifications")).toEqual(ids);
});

test("a scheduled send can be cancelled", async () => {
  expect(await follow("Schedule, and cancel")).toEqual(["scheduled cancelled"]);
});

test("a trace explains in sentences why a device got the notification", async () => {
  expect((await follow("Find out why a device got nothing")).join("\n")).toContain("topic:news");
});

test("a device is registered, with its user, topics and metadata", async () => {
  const [line = ""] = await follow("Register a device for your app");
  const [id, credential] = line.split(" ");
  expect(credential).toBe("hdc_");
  const { data } = expectStatus(await project.call(`GET /devices/${id}`), 200).body;
  expect(data).toMatchObject({ user_id: "u-17", topics: ["news"], metadata: { plan: "pro" } });
});

test("a user token logs its user in", async () => {
  const [file, printed] = [await recipe("Prove to Herald who is logged in"), "console.log(userToken);"];
  await writeFile(file, `${await readFile(file, "utf8")}\n${printed}`);
  const { stdout } = await run(process.execPath, [file], { env: environment() });
  const [parts, userToken] = stdout.trim().split("\n");
  expect(parts).toBe("3");
  const { device, credential } = await project.register();
  const body = { device: { user_token: userToken } };
  const changed = await project.call(`PATCH /devices/${device.id}`, { body, token: credential });
  expect(expectStatus(changed, 200).body.data.user_id).toBe("u-17");
});

test("events are followed, and resumed after a position", async () => {
  // Those of earlier tests would be among its events.
  for (const { id } of await project.notifications()) await project.final(id);
  const since = new Date().toISOString();
  const ids: string[] = [];
  for (const title of ["one", "two"]) {
    const { id } = await project.send({ title, targets: ["topic:news"] });
    ids.push(id);
    await project.final(id);
  }
  const [completed, position = ""] = await follow("Follow events", { SINCE: since });
  expect(completed).toBe(`completed ${ids[0]}`);
  const [next] = await follow("Follow events", { LAST_EVENT_ID: position.split(" ").at(-1) ?? "" });
  expect(next).toBe(`completed ${ids[1]}`);
});

test("a webhook's messages are verified", async () => {
  const port = String(await freePort());
  const body = { webhook: { url: `http://127.0.0.1:${port}/` } };
  const { data, secret: webhookSecret } = expectStatus(await project.call("POST /webhooks", { body }), 201).body;
  const env = { ...environment(), PORT: port, WEBHOOK_SECRET: webhookSecret };
  const receiver = spawn(process.execPath, [await recipe("Receive webhooks")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  receiver.stdout.on("data", (text) => {
    printed += text;
  });
  try {
    const forged = () => fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" });
    await eventually(async () => expect((await forged()).status).toBe(401), { timeoutMs: 20_000 });
    expectStatus(await project.call(`POST /webhooks/${data.id}/ping`), 202);
    await eventually(async () => expect(printed).toMatch(/^io\.herald\.webhook\.ping\.v1 2/), { timeoutMs: 20_000 });
  } finally {
    const ended = once(receiver, "exit");
    receiver.kill();
    await ended;
    await project.call(`DELETE /webhooks/${data.id}`);
  }
});

test("an error has the API's own sentences", async () => {
  const lines = await follow("When something goes wrong");
  expect(lines[0]).toBe("validation-failed 422");
  expect(lines.join()).toContain("notification.targets: at least one target is required");
});

test("an operator's script makes a project that can send", async () => {
  expect(await follow("Administer")).toEqual([expect.stringMatching(/^prj_\w{26} hpt_ his_$/)]);
});
