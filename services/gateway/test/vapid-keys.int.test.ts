import { createECDH } from "node:crypto";
import { newProjectId, vapidKeyId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
let current: { id: string; public_key: string };
beforeAll(async () => {
  system = await startGatewayTest();
});
afterAll(() => system.stop());
beforeEach(async () => {
  project = await system.project();
  await admin("PUT", "", { subject: "mailto:ops@example.com" });
  current = (await published()).body.data;
});

const admin = (method: string, path: string, body?: object) =>
  system.call(`${method} /admin/v1/projects/${project.id}/providers/webpush${path}`, { token: adminToken, body });
const published = (id: string = project.id) => system.call(`GET /api/v1/webpush-key?project_id=${id}`);

const subscription = { p256dh: `B${"A".repeat(86)}`, auth: "A".repeat(22) };
let endpoints = 0;
const register = (keys: object = subscription) => {
  const device = { platform: "web", token: `https://push.example/${++endpoints}`, keys };
  return system.call("POST /api/v1/devices", { token: project.token, body: { device } });
};
const keyIn = async (answer: ReturnType<typeof register>) => (await answer).body.data.vapid_key_id;

describe("what a browser reads", () => {
  test("is the current key, and the one that is to come, from any origin and without a credential", async () => {
    expect(current).toEqual({ id: vapidKeyId(current.public_key), public_key: current.public_key });
    const { body } = await admin("POST", "/keys", {});
    const next = { id: body.data.id, public_key: body.data.public_key };
    await eventually(async () => expect((await published()).body.data).toEqual({ ...current, next }));
    expect((await published()).headers.get("access-control-allow-origin")).toBe("*");
    await admin("PATCH", `/keys/${next.id}`, { key: { status: "current" } });
    await eventually(async () => expect((await published()).body.data).toEqual(next));
  });

  test("is a 404 for an unknown project, or without Web Push", async () => {
    expect((await published(newProjectId(new Date()))).body).toMatchObject({ status: 404 });
    const bare = await system.project();
    const answer = await published(bare.id);
    expect([answer.status, answer.problem.errors]).toEqual([
      404,
      ["provider: provider not found; the project has no settings for it"],
    ]);
    expect((await published("prj_1")).status).toBe(422);
  });
});

describe("a registration", () => {
  // It uses the replicated record.
  beforeEach(() => eventually(async () => expect(await keyIn(register())).toBe(current.id)));

  test("is made with the current key unless it names another of the project's", async () => {
    expect(await keyIn(register())).toBe(current.id);
    const { data: next } = (await admin("POST", "/keys", {})).body;
    expect(await keyIn(register({ ...subscription, vapid_key: next.public_key }))).toBe(next.id);
    expect(system.peers.asked.at(-1)?.data).toMatchObject({
      keys: subscription,
      vapidKeyId: next.id,
      currentVapidKeyId: current.id,
    });
  });

  test("names its key on every route that registers", async () => {
    const keys = { ...subscription, vapid_key: current.public_key };
    const identifier = "https://push.example/a";
    const body = { project_id: project.id, identifier, platform: "web", keys };
    const { credential, data } = (await system.call("PUT /api/v1/identification", { body })).body;
    expect(system.peers.asked.at(-1)?.data).toMatchObject({ keys: subscription, vapidKeyId: current.id });
    const change = { device: { token: "https://push.example/b", keys } };
    await system.call(`PATCH /api/v1/devices/${data.id}`, { token: credential, body: change });
    expect(system.peers.asked.at(-1)?.data).toMatchObject({
      change: { token: "https://push.example/b", keys: subscription },
      vapidKeyId: current.id,
      currentVapidKeyId: current.id,
    });
  });

  test("with a key that is not the project's is refused in words", async () => {
    const vapidKey = createECDH("prime256v1").generateKeys("base64url");
    const refused = await register({ ...subscription, vapid_key: vapidKey });
    expect([refused.status, refused.problem.errors]).toEqual([
      422,
      ["device.keys.vapid_key: is not a key of this project; subscribe with the key of GET /api/v1/webpush-key"],
    ]);
    expect((await register({ ...subscription, vapid_key: "x" })).problem.errors).toEqual([
      "device.keys.vapid_key: must be a VAPID public key: an uncompressed P-256 point, 65 bytes as base64url",
    ]);
    await admin("DELETE", "");
    await eventually(async () =>
      expect(await keyIn(register({ ...subscription, vapid_key: vapidKey }))).toBe(vapidKeyId(vapidKey)),
    );
  });
});

describe("a rotation", () => {
  const list = async () => (await admin("GET", "/keys")).body.data;

  test("shows how many subscriptions need each key, and removes a needed key only with force", async () => {
    for (let at = 0; at < 3; at++) await register();
    const { data: next } = (await admin("POST", "/keys", {})).body;
    expect(next).toMatchObject({ status: "next", devices: 0 });
    await register({ ...subscription, vapid_key: next.public_key });
    const promoted = await admin("PATCH", `/keys/${next.id}`, { key: { status: "current" } });
    expect(promoted.body.data).toMatchObject({ id: next.id, status: "current", devices: 1 });
    expect(await list()).toMatchObject([
      { id: next.id, status: "current", devices: 1 },
      { id: current.id, status: "earlier", devices: 3 },
    ]);

    const refused = await admin("DELETE", `/keys/${current.id}`);
    expect([refused.status, refused.problem.errors]).toEqual([
      409,
      [
        "key: 3 active subscriptions were made with it and would get nothing until they subscribe again; wait for them, or repeat with force=true",
      ],
    ]);
    expect((await admin("DELETE", `/keys/${current.id}?force=false`)).status).toBe(409);
    expect(await list()).toHaveLength(2);
    const forced = await admin("DELETE", `/keys/${current.id}?force=true`);
    expect([forced.status, forced.body.data]).toEqual([200, { id: current.id, lost_devices: 3 }]);
    expect(await list()).toMatchObject([{ id: next.id }]);
  });

  test("an unused key is removed without force", async () => {
    const { data: next } = (await admin("POST", "/keys", {})).body;
    expect((await admin("DELETE", `/keys/${next.id}`)).body.data).toEqual({ id: next.id, lost_devices: 0 });
  });

  test("the current key cannot be removed, and an unknown one is a 404", async () => {
    await register();
    expect((await admin("DELETE", `/keys/${current.id}`)).body).toMatchObject({
      type: expect.stringMatching(/current/),
    });
    for (const id of ["0123456789abcdef", "nonsense"])
      expect((await admin("DELETE", `/keys/${id}?force=true`)).status).toBe(404);
  });

  test("counts subscriptions that name no key, or one of settings that are gone, with the first", async () => {
    await register();
    await register({ ...subscription });
    for (const { value } of system.peers.devices.values()) if (value.platform === "web") delete value.vapid_key_id;
    await register();
    expect(await list()).toMatchObject([{ id: current.id, devices: 3 }]);
  });
});
