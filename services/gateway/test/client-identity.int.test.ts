import { newProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { adminToken, apnsToken, type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";
import type { World } from "./route-case.ts";

let system: GatewayTest;
let world: World;
beforeAll(async () => {
  system = await startGatewayTest();
});
afterAll(() => system.stop());
beforeEach(async () => {
  world = await createWorld(system, ["device", "credential"]);
});

const identify = (body: object) =>
  system.call("PUT /api/v1/identification", { body: { project_id: world.project.id, platform: "ios", ...body } });

describe("PUT /identification", () => {
  test("a new token gives a device and its credential, a known one gives neither credential nor data", async () => {
    const identifier = apnsToken();
    const first = await identify({ identifier, metadata: { plan: "pro" } });
    expect(first.status).toBe(201);
    expect(first.body).toEqual({ data: { id: expect.any(String), status: "active" }, credential: expect.any(String) });
    const again = await identify({ identifier });
    expect(again.status).toBe(200);
    expect(again.body).toEqual({ data: first.body.data });
    const read = await system.call(`GET /api/v1/devices/${first.body.data.id}`, { token: first.body.credential });
    expect(read.body.data).toMatchObject({ token: identifier, metadata: { plan: "pro" } });
  });

  test("asks registry for what was sent, in its words", async () => {
    const identifier = apnsToken();
    const previousIdentifier = apnsToken();
    await identify({
      identifier,
      previous_identifier: previousIdentifier,
      identifiers: { current_locale: "de" },
      environment: "sandbox",
    });
    expect(system.peers.asked.at(-1)).toEqual({
      question: "registry.devices.identify",
      data: {
        projectId: world.project.id,
        platform: "ios",
        token: identifier,
        previousToken: previousIdentifier,
        identifiers: { current_locale: "de" },
        environment: "sandbox",
      },
    });
  });

  test("a project without open registration is a 403, and an unknown one a 404", async () => {
    const route = `PATCH /admin/v1/projects/${world.project.id}`;
    const body = { project: { open_registration: false } };
    expect((await system.call(route, { token: adminToken, body })).body.data.open_registration).toBe(false);
    const identifier = apnsToken();
    await eventually(async () => expect((await identify({ identifier })).status).toBe(403));
    const named = { project_id: world.project.id, identifier: world.device.token, metadata: {} };
    expect((await system.call("PATCH /api/v1/metadata", { body: named })).status).toBe(403);
    expect((await identify({ identifier, project_id: newProjectId(new Date()) })).status).toBe(404);
  });
});

describe.each(["PATCH", "PUT"])("%s /metadata", (method) => {
  const change = (body: object, token?: string) => system.call(`${method} /api/v1/metadata`, { body, token });

  test("by device credential: the device is named by it, and nothing else may name one", async () => {
    const answer = await change({ metadata: { plan: "pro", old: null } }, world.credential);
    expect(answer.body.data).toMatchObject({ id: world.device.id, metadata: { plan: "pro" } });
    const named = await change(
      { metadata: {}, device_id: world.device.id, project_id: world.project.id, identifier: "x", platform: "ios" },
      world.credential,
    );
    expect(named.status).toBe(422);
    expect(named.problem.errors.map((message) => message.split(":")[0])).toEqual([
      "device_id",
      "project_id",
      "identifier",
      "platform",
    ]);
  });

  test("by project token: `device_id` names it", async () => {
    const answer = await change({ metadata: { plan: "pro" }, device_id: world.device.id }, world.project.token);
    expect(answer.body.data).toMatchObject({
      id: world.device.id,
      metadata: { plan: "pro" },
      token: world.device.token,
    });
    const missing = await change({ metadata: {} }, world.project.token);
    expect([missing.status, missing.problem.errors]).toEqual([422, ["device_id: is required with a project token"]]);
    const other = await change(
      { metadata: {}, device_id: world.device.id, project_id: world.project.id },
      world.project.token,
    );
    expect([other.status, other.problem.errors]).toEqual([422, ["project_id: is not accepted with a project token"]]);
  });

  test("protected values are left out and listed, and the rest is stored", async () => {
    const body = { project: { protected_metadata: ["user_id", "billing.plan"] } };
    await system.call(`PATCH /admin/v1/projects/${world.project.id}`, { token: adminToken, body });
    const metadata = { plan: "pro", User_ID: "u", billing: { plan: "x", city: "y" } };
    const left = ["metadata.User_ID", "metadata.billing.plan"];
    const named = { project_id: world.project.id, identifier: world.device.token };
    await eventually(async () => expect((await change({ metadata }, world.credential)).body.ignored).toEqual(left));
    const kept = { plan: "pro", billing: { city: "y" } };
    expect(system.peers.asked.at(-1)?.data).toMatchObject({ change: { metadata: kept } });
    expect((await change({ ...named, metadata })).body).toEqual({
      data: { id: world.device.id, status: "active" },
      ignored: left,
    });
    expect(system.peers.asked.at(-1)?.data).toMatchObject({ metadata: kept });
    const path = `PATCH /api/v1/devices/${world.device.id}`;
    const device = { metadata, identifiers: { user_id: "u", locale: "German" } };
    const patched = await system.call(path, { body: { device }, token: world.credential });
    expect(patched.body.ignored).toEqual([...left, "identifiers.user_id", "identifiers.locale"]);
    // The project's own backend may write them.
    const own = await change({ metadata, device_id: world.device.id }, world.project.token);
    expect([own.status, own.body.ignored]).toEqual([200, undefined]);
  });

  test("by client identity: it learns the id and the status alone", async () => {
    const named = { project_id: world.project.id, identifier: world.device.token };
    const answer = await change({ ...named, metadata: { seen: true } });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ data: { id: world.device.id, status: "active" } });
    expect((await change({ ...named, platform: "android", metadata: {} })).status).toBe(404);
    expect((await change({ ...named, identifier: apnsToken(), metadata: {} })).status).toBe(404);
  });

  test("by client identity: a token on two platforms must say which", async () => {
    const body = { device: { token: world.device.token, platform: "android" } };
    expect((await system.call("POST /api/v1/devices", { token: world.project.token, body })).status).toBe(201);
    const named = { project_id: world.project.id, identifier: world.device.token, metadata: {} };
    const ambiguous = await change(named);
    expect([ambiguous.status, ambiguous.problem.type]).toEqual([422, "/docs/errors#ambiguous-device"]);
    expect((await change({ ...named, platform: "ios" })).body.data.id).toBe(world.device.id);
  });

  test("without a credential is a 401; with half an identity the error names the other half", async () => {
    expect((await change({ metadata: {} })).status).toBe(401);
    const half = await change({ metadata: {}, identifier: world.device.token });
    expect([half.status, half.problem.errors]).toEqual([422, ["project_id: is required with client identity"]]);
    const both = await change({ metadata: {}, project_id: world.project.id, device_id: world.device.id });
    expect(both.problem.errors).toEqual([
      "device_id: is not accepted with client identity",
      "identifier: is required with client identity",
    ]);
  });
});

test("requests by client identity are limited for each address, others are not", async () => {
  const limited = await startGatewayTest({ environment: { HERALD_GATEWAY_LIMIT_CLIENTS: "5" } });
  try {
    const own = await createWorld(limited, ["credential"]);
    const body = () => ({ project_id: own.project.id, identifier: apnsToken(), platform: "ios" });
    // At once, so that a slow machine does not need a second window of ten seconds.
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => limited.call("PUT /api/v1/identification", { body: body() })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 201, 201, 429]);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get("ratelimit-policy")).toBe('"clients";q=5;w=10');
    const byCredential = await limited.call("PATCH /api/v1/metadata", {
      token: own.credential,
      body: { metadata: {} },
    });
    expect(byCredential.status).toBe(200);
    // No proxy is configured for this gateway, so it ignores forwarded addresses.
    const headers = { "x-forwarded-for": "203.0.113.9" };
    expect((await limited.call("PUT /api/v1/identification", { body: body(), headers })).status).toBe(429);
  } finally {
    await limited.stop();
  }
});

test("behind a proxy that is trusted, each client has its own limit", async () => {
  const environment = { HERALD_GATEWAY_LIMIT_CLIENTS: "1", HERALD_GATEWAY_TRUST_PROXY: "1" };
  const limited = await startGatewayTest({ environment });
  try {
    const own = await limited.project();
    const from = (address: string) =>
      limited.call("PUT /api/v1/identification", {
        body: { project_id: own.id, identifier: apnsToken(), platform: "ios" },
        headers: { "x-forwarded-for": address },
      });
    const [first, again, forged, other] = await Promise.all([
      from("203.0.113.9"),
      from("203.0.113.9"),
      from("198.51.100.1, 203.0.113.9"),
      from("203.0.113.10"),
    ]);
    expect([first, again, forged].map(({ status }) => status).toSorted()).toEqual([201, 429, 429]);
    expect(other.status).toBe(201);
  } finally {
    await limited.stop();
  }
});
