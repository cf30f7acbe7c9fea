import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { WebPushKey } from "@herald/contracts";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { shellBlocks } from "./harness/shell-blocks.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
const page = join(import.meta.dirname, "../docs/how-to/rotate-vapid-keys.md");

let system: System;
let project: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Rotation");
});
logOnFailure(() => system);

/** Runs the commands under a heading of the how-to page. Returns the output of the last one. */
const follow = async (heading: string): Promise<Record<string, unknown>> => {
  const markdown = await readFile(page, "utf8");
  const script = ["Before you begin", heading].flatMap((each) => shellBlocks(markdown, each)).join("\necho\n");
  const env = { ...process.env, gateway: system.gateway, project: project.id, HERALD_ADMIN_TOKEN: system.adminToken };
  const { stdout } = await run("sh", ["-e", "-c", script], { env });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
};

const publicKey = async () => {
  const { body } = expectStatus(await request(system.gateway, `GET /api/v1/webpush-key?project_id=${project.id}`), 200);
  return WebPushKey.parse(body.data);
};

/** A browser subscribes with a key, and its app registers the subscription. `says`: the registration names the key. */
const subscribe = async (applicationServerKey: string, { says = true } = {}) => {
  const made = await request(system.simulators.url, "POST /webpush/subscriptions", { body: { applicationServerKey } });
  const { endpoint, keys } = expectStatus(made, 201).body;
  const body = {
    project_id: project.id,
    platform: "web",
    identifier: endpoint,
    keys: { ...keys, ...(says ? { vapid_key: applicationServerKey } : {}) },
  };
  const { data, credential } = expectStatus(
    await project.call("PUT /identification", { body, token: undefined }),
    201,
  ).body;
  return { id: data.id as string, endpoint: endpoint as string, keys, credential: credential as string };
};

/** Sends to all devices. Resolves to the keys that the push service saw, by device, and to the final notification. */
const sendToAll = async () => {
  const { id } = await project.send({ title: "Hello", targets: ["all"] });
  const { counts, failures } = await project.final(id);
  const pushes = await system.simulators.pushes({ provider: "webpush", status: 201 });
  const own = pushes.filter((push) => payloadOf(push).notification_id === id);
  return { counts, failures, keys: Object.fromEntries(own.map((push) => [deviceOf(push), push.vapidKey])) };
};

test("the page's key rotation loses no subscriber: old and new ones get every push", async () => {
  const { simulators } = JSON.parse(await readFile(join(system.folder, ".herald/local.json"), "utf8"));
  const settings = { subject: "mailto:ops@example.com", endpoint: simulators.webpush, ca: simulators.ca };
  expectStatus(await system.admin(`PUT /projects/${project.id}/providers/webpush`, { body: settings }), 200);

  const old = await eventually(publicKey);
  const early = await subscribe(old.public_key);
  const silent = await subscribe(old.public_key, { says: false });
  const expected: Record<string, string> = { [early.id]: old.public_key, [silent.id]: old.public_key };
  expect((await sendToAll()).keys).toEqual(expected);

  expect(await follow("Add the next key")).toMatchObject({ data: { status: "next", devices: 0 } });
  const next = await eventually(async () => {
    const { next } = await publicKey();
    if (next === undefined) throw new Error("the next key is not published");
    return next;
  });
  const eager = await subscribe(next.public_key);
  expected[eager.id] = next.public_key;
  expect((await sendToAll()).keys).toEqual(expected);

  expect(await follow("Make it current")).toMatchObject({ data: { id: next.id, status: "current", devices: 1 } });
  await eventually(async () => expect(await publicKey()).toEqual(next));
  expected[(await subscribe(next.public_key)).id] = next.public_key;
  expected[(await subscribe(next.public_key, { says: false })).id] = next.public_key;
  // A page that was loaded before the switch, and an app that registers at every start without naming its key.
  expected[(await subscribe(old.public_key)).id] = old.public_key;
  const again = { token: silent.endpoint, platform: "web" as const, keys: silent.keys };
  expect(await project.register(again)).toMatchObject({ created: false, device: { vapid_key_id: old.id } });
  expect(await sendToAll()).toMatchObject({ keys: expected, counts: { devices: 6, accepted: 6 } });

  expect(await follow("Wait")).toMatchObject({
    data: [
      { id: next.id, status: "current", devices: 3 },
      { id: old.id, status: "earlier", devices: 3 },
    ],
  });
  expect(await follow("Retire the earlier key")).toMatchObject({
    status: 409,
    errors: [expect.stringMatching(/^key: 3 active subscriptions were made with it/)],
  });

  // One device comes back and moves to the new key; the others are lost.
  const made = await request(system.simulators.url, "POST /webpush/subscriptions", {
    body: { applicationServerKey: next.public_key },
  });
  const { endpoint, keys } = expectStatus(made, 201).body;
  const device = { token: endpoint, keys: { ...keys, vapid_key: next.public_key } };
  const moved = await project.call(`PATCH /devices/${early.id}`, { token: early.credential, body: { device } });
  expect(expectStatus(moved, 200).body.data).toMatchObject({ id: early.id, vapid_key_id: next.id });
  const forced = await system.admin(`DELETE /projects/${project.id}/providers/webpush/keys/${old.id}?force=true`);
  expect(expectStatus(forced, 200).body.data).toEqual({ id: old.id, lost_devices: 2 });
  expect(await sendToAll()).toMatchObject({
    counts: { devices: 6, accepted: 4, failed: 2 },
    failures: { "vapid-key-retired": 2 },
  });
});
