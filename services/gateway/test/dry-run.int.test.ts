import { randomUUID } from "node:crypto";
import { lastMessage } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
  const { token } = project;
  for (const device of [
    { token: apnsToken(), platform: "ios", topics: ["news"] },
    { token: apnsToken(), platform: "ios" },
    { token: "fcm-token-of-a-device", platform: "android", topics: ["news"] },
  ]) {
    const { status } = await system.call("POST /api/v1/devices", { token, body: { device } });
    expect(status).toBe(201);
  }
});
afterAll(() => system.stop());

const send = (notification: object, headers: Record<string, string> = {}) =>
  system.call("POST /api/v1/notifications", { token: project.token, body: { notification }, headers });
const dryRun = (notification: object, headers?: Record<string, string>) =>
  send({ title: "Hello", dry_run: true, ...notification }, headers);

describe("a dry run", () => {
  test("says what a send says of names and fields that a provider refuses", async () => {
    const refused = {
      title: "Hello",
      targets: ["news"],
      data: { from: "Ada", token: "x", order: "42" },
      android: { android: { ttl: "1h" } },
    };
    const [dry, real] = [await dryRun(refused), await send(refused)];
    expect([dry.status, real.status]).toEqual([422, 422]);
    expect(dry.body.errors).toEqual([
      expect.stringMatching(/^notification\.data\.from: /),
      expect.stringMatching(/^notification\.data\.token: is reserved/),
      expect.stringMatching(/^notification\.android\.android\.ttl: must be seconds/),
    ]);
    expect(real.body.errors).toEqual(dry.body.errors);
  });

  test("returns the devices and the payload by platform", async () => {
    const { status, body } = await dryRun({ targets: ["news", "sport"], data: { a: "b" }, ttl: 60, link_to: "/news" });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      dry_run: true,
      devices: { total: 2, ios: 1, android: 1, web: 0 },
      unmatched: ["sport"],
    });
    expect(body.data.rendered).toEqual({
      ios: {
        aps: { alert: { title: "Hello" } },
        link_to: "/news",
        data: { a: "b" },
        notification_id: expect.stringMatching(/^ntf_/),
        project_id: project.id,
        token: "<open token>",
      },
      android: {
        message: {
          data: {
            a: "b",
            link_to: "/news",
            notification_id: expect.stringMatching(/^ntf_/),
            project_id: project.id,
            token: "<open token>",
          },
          notification: { title: "Hello" },
          android: { priority: "HIGH", ttl: "60s", notification: { tag: expect.stringMatching(/^ntf_/) } },
          token: "<push token>",
        },
      },
    });
  });

  test("returns what kits get, and the form that Android apps draw, each with its size", async () => {
    const buttons = [{ id: "track", title: "Track" }];
    const { body } = await dryRun({ targets: ["news"], receipts: 0.5, buttons });
    const { ios, android, drawn } = body.data.rendered;
    expect(ios).toMatchObject({ receipt: 25, buttons, aps: { "mutable-content": 1 } });
    expect(android.message.notification).toEqual({ title: "Hello" });
    expect(JSON.parse(drawn.message.data.herald)).toMatchObject({ title: "Hello", buttons });
    const size = { bytes: expect.any(Number), max: 4_096 };
    expect(body.data.sizes).toEqual({ ios: size, android: size, drawn: size });
    // The open token is longer than its placeholder.
    expect(body.data.sizes.ios.bytes).toBeGreaterThan(JSON.stringify(ios).length);
    const normal = await dryRun({ targets: ["news"], receipts: true, priority: "normal" });
    expect(normal.body.data.rendered).not.toHaveProperty("drawn");
  });

  test("without devices renders nothing", async () => {
    const { status, body } = await dryRun({ targets: ["sport"] });
    expect([status, body.data]).toEqual([
      200,
      {
        dry_run: true,
        devices: { total: 0, ios: 0, android: 0, web: 0 },
        unmatched: ["sport"],
        rendered: {},
        sizes: {},
      },
    ]);
  });

  test("sends nothing", async () => {
    await dryRun({ targets: ["all"] });
    const published = () => lastMessage(system.bus, "PUSH_CMD", `push.cmd.v1.dispatch.send.${project.id}.*`, SendV1);
    expect(await published()).toBeUndefined();
    const sent = await send({ title: "Hello", targets: ["all"] });
    expect((await published())?.data.notificationId).toBe(sent.body.data.id);
  });

  test("is refused like the notification itself", async () => {
    const refused = await dryRun({ targets: ["all"], send_at: "2999-01-01T00:00:00Z" });
    expect([refused.status, refused.problem.errors]).toEqual([
      422,
      ["notification.send_at: must be at most 30 days ahead"],
    ]);
  });

  test("has the same answer under the same Idempotency-Key, which is then not free to send", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const first = await dryRun({ targets: ["all"] }, headers);
    const again = await dryRun({ targets: ["all"] }, headers);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await send({ title: "Hello", targets: ["all"] }, headers)).status).toBe(422);
  });

  test("is a 503 without registry", async () => {
    const headers = { "idempotency-key": randomUUID() };
    system.peers.away("registry");
    const answer = await dryRun({ targets: ["all"] }, headers);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, expect.any(String)]);
    system.peers.back();
    expect((await dryRun({ targets: ["all"] }, headers)).status).toBe(200);
  });
});
