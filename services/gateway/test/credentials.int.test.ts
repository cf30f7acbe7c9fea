import { newProjectToken, newTokenId, secretHash } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";

let system: GatewayTest;
let project: TestProject;
let now = () => new Date();

beforeAll(async () => {
  system = await startGatewayTest({ now: () => now(), environment: { HERALD_GATEWAY_LIMIT_FAILURES: "30" } });
  project = await system.project();
});
afterAll(() => system.stop());
afterEach(() => {
  now = () => new Date();
});

const devices = (token: string) => system.call("GET /api/v1/devices", { token });

describe("a project token", () => {
  test("is refused after its revocation, without asking another service", async () => {
    const made = await system.call(`POST /admin/v1/projects/${project.id}/tokens`, {
      token: adminToken,
      body: { token: { name: "short-lived" } },
    });
    const { token } = made.body;
    expect((await devices(token)).status).toBe(200);
    const revoked = await system.call(`DELETE /admin/v1/projects/${project.id}/tokens/${made.body.data.id}`, {
      token: adminToken,
    });
    expect(revoked.status).toBe(204);
    await eventually(async () => expect((await devices(token)).status).toBe(401));
  });

  test("is accepted as soon as it is written, before the watch delivers it", async () => {
    // Many at once: at least one call overtakes the watch, and each must be accepted all the same.
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const token = newProjectToken();
        const record = { id: newTokenId(new Date()), projectId: project.id, scopes: ["read" as const] };
        await system.peers.tokenBucket.put(secretHash(token), record);
        expect((await devices(token)).status).toBe(200);
      }),
    );
  });

  test("ends when it expires", async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const body = { token: { name: "until then", expires_at: expiresAt } };
    const made = await system.call(`POST /admin/v1/projects/${project.id}/tokens`, { token: adminToken, body });
    expect(made.body.data.expires_at).toBe(expiresAt);
    expect((await devices(made.body.token)).status).toBe(200);
    now = () => new Date(Date.now() + 60_001);
    expect((await devices(made.body.token)).status).toBe(401);
  });

  test("cannot be made to expire in the past", async () => {
    const body = { token: { name: "late", expires_at: "2020-01-01T00:00:00Z" } };
    const refused = await system.call(`POST /admin/v1/projects/${project.id}/tokens`, { token: adminToken, body });
    expect([refused.status, refused.problem.errors]).toEqual([422, ["token.expires_at: must be in the future"]]);
  });

  test("of a deleted project is refused", async () => {
    const gone = await system.project();
    expect((await system.call(`DELETE /admin/v1/projects/${gone.id}`, { token: adminToken })).status).toBe(204);
    await eventually(async () => expect((await devices(gone.token)).status).toBe(401));
  });
});

describe("a device credential", () => {
  test("ends when the device registers again", async () => {
    const { device, credential, project: owner } = await createWorld(system, ["device", "credential"]);
    const read = (token: string) => system.call(`GET /api/v1/devices/${device.id}`, { token });
    expect((await read(credential)).status).toBe(200);
    const again = await system.call("POST /api/v1/devices", {
      token: owner.token,
      body: { device: { token: device.token, platform: device.platform } },
    });
    expect(again.status).toBe(200);
    expect((await read(credential)).status).toBe(401);
    expect((await read(again.body.credential)).status).toBe(200);
  });
});

describe("an answer that refuses a credential", () => {
  test("says how to authenticate, and never repeats what was sent", async () => {
    const missing = await system.call("GET /api/v1/devices");
    expect(missing.headers.get("www-authenticate")).toBe('Bearer realm="herald"');
    const secret = newProjectToken();
    const unknown = await devices(secret);
    expect(unknown.headers.get("www-authenticate")).toBe('Bearer realm="herald", error="invalid_token"');
    expect(JSON.stringify(unknown.body)).not.toContain(secret);
    const scoped = await system.call("GET /api/v1/devices", { token: await system.token(project, ["send"]) });
    expect(scoped.headers.get("www-authenticate")).toContain('error="insufficient_scope", scope="read"');
  });
});

describe("guessing credentials", () => {
  test("is stopped, while valid credentials from the same address go through", async () => {
    const guesses = await Promise.all(Array.from({ length: 60 }, () => devices(newProjectToken())));
    const stopped = guesses.filter(({ status }) => status === 429);
    expect(stopped.length).toBeGreaterThan(0);
    expect(guesses.every(({ status }) => status === 401 || status === 429)).toBe(true);
    for (const { headers } of stopped) {
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(headers.get("ratelimit-policy")).toBe('"failures";q=30;w=10');
      expect(headers.get("ratelimit")).toMatch(/^"failures";r=0;t=[0-9]+$/);
    }
    expect((await devices(project.token)).status).toBe(200);
    expect((await system.call("GET /admin/v1/projects", { token: adminToken })).status).toBe(200);
  });
});
