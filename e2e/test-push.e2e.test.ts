import { type Provider, platformOf } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { newAddress } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import type { System } from "./harness/system.ts";

const providers: readonly Provider[] = ["apns", "fcm", "webpush"];

const testPush = (system: System, { id }: Project, provider: Provider, body: object) =>
  system.admin(`POST /projects/${id}/providers/${provider}/test`, { body });

const tested = async (...args: Parameters<typeof testPush>) => expectStatus(await testPush(...args), 200).body.data;

// The start of the system has the time of a hook, which is longer than a test's.
test.beforeAll(({ system }) => void system);

describe("a test push", () => {
  test.for(providers)("of %s arrives, and is in no list", async (provider, { system }) => {
    const project = await system.project("Test push", [provider]);
    const address = await newAddress(system.simulators, platformOf[provider]);
    expect(await tested(system, project, provider, address)).toMatchObject({ result: "accepted" });
    const pushes = (await system.simulators.pushes()).filter((push) => payloadOf(push)?.project_id === project.id);
    expect(pushes).toHaveLength(1);
    expect(await project.notifications()).toEqual([]);
  });

  test.for(["ios", "web"] as const)("of FCM is what a device on %s gets through it", async (platform, { system }) => {
    const project = await system.project("Test push through FCM", ["fcm"]);
    await system.simulators.script([]);
    const { token } = await newAddress(system.simulators, "android");
    expect(await tested(system, project, "fcm", { token, platform })).toMatchObject({ result: "accepted" });
    const [push] = (await system.simulators.pushes()).filter((one) => payloadOf(one)?.project_id === project.id);
    expect(push?.payload).toHaveProperty(platform === "ios" ? "apns.payload.aps.alert" : "webpush");
    const refused = await testPush(system, project, "apns", { token: apnsToken(), platform });
    expect(refused.status === 422).toBe(platform === "web");
  });

  test("shows the provider's reason for a refusal, and pauses nothing", async ({ system }) => {
    const project = await system.project("Refused");
    const answers = [
      { prefix: "e1", rule: { status: 400, reason: "BadDeviceToken" }, result: "token-refused" },
      { prefix: "e2", rule: { status: 410 }, result: "token-refused", word: "Unregistered" },
      { prefix: "e3", rule: { status: 403, reason: "InvalidProviderToken" }, result: "credential-refused" },
      { prefix: "e4", rule: { status: 413, reason: "PayloadTooLarge" }, result: "message-refused" },
      { prefix: "e5", rule: { status: 503, reason: "ServiceUnavailable" }, result: "try-later" },
    ];
    await system.simulators.script(
      answers.map(({ prefix, rule }) => ({ provider: "apns" as const, tokenPrefix: prefix, ...rule })),
    );
    for (const { prefix, rule, result, word = rule.reason } of answers) {
      const data = await tested(system, project, "apns", { token: apnsToken(prefix) });
      expect(data).toMatchObject({ result, provider_reason: word });
      expect(data.detail).toMatch(/\w{3,}.*\.$/);
      // A test push has no device.
      expect(data.detail).not.toContain("deactivated");
    }
    const { data } = expectStatus(await system.admin(`GET /projects/${project.id}/providers/apns`), 200).body;
    expect(data.status).toBe("active");
  });

  test("says what Apple's words about Web Push mean", async ({ system }) => {
    const project = await system.project("Safari", ["webpush"]);
    const address = await newAddress(system.simulators, "web");
    const tokenPrefix = String(address.token);
    const wordOf = async (status: number, reason: string) => {
      await system.simulators.script([{ provider: "webpush", tokenPrefix, status, reason, times: 1 }]);
      return tested(system, project, "webpush", address);
    };
    expect(await wordOf(403, "BadJwtToken")).toMatchObject({
      result: "credential-refused",
      provider_reason: "BadJwtToken",
      detail: expect.stringContaining("`subject`"),
    });
    expect(await wordOf(400, "VapidPkHashMismatch")).toMatchObject({
      result: "message-refused",
      detail: expect.stringContaining("must subscribe again"),
    });
  });

  test("works while the provider is paused, so that new settings can be tried", async ({ system }) => {
    const project = await system.project("Paused");
    const { device } = await project.register({ token: apnsToken("e6") });
    await system.simulators.script([
      { provider: "apns", tokenPrefix: "e6", status: 403, reason: "InvalidProviderToken", times: 2 },
    ]);
    await project.send({ title: "Pause it", targets: [device.id] });
    const settings = async () => (await system.admin(`GET /projects/${project.id}/providers/apns`)).body.data;
    await eventually(async () => expect(await settings()).toMatchObject({ status: "paused" }));
    expect(await tested(system, project, "apns", { token: apnsToken() })).toMatchObject({ result: "accepted" });
  });

  test("times out for a provider that never answers or is unreachable", async ({ system }) => {
    const project = await system.project("Silent");
    await system.simulators.script([{ provider: "apns", tokenPrefix: "e7", hang: true }]);
    expect(await tested(system, project, "apns", { token: apnsToken("e7") })).toMatchObject({
      result: "no-answer",
      provider_reason: "no answer within 4 s",
    });
    await system.putProvider(project, "apns", { endpoint: "https://127.0.0.1:9" });
    const data = await tested(system, project, "apns", { token: apnsToken() });
    expect(data.result).toBe("not-reached");
    expect(data.detail).toContain("127.0.0.1:9");
  });

  test("is refused without settings, and to a device of another provider", async ({ system }) => {
    const project = await system.project("None");
    const fcm = expectStatus(await testPush(system, project, "fcm", { token: "a-token" }), 404).body;
    expect(fcm.errors).toEqual(["provider: provider not found; the project has no settings for it"]);
    const bad = expectStatus(await testPush(system, project, "apns", { token: "xyz" }), 422).body;
    expect(bad.errors.join(" ")).toContain("token: must be an APNs device token");
    expectStatus(await project.call("POST /x"), 404);
    expectStatus(
      await system.admin(`POST /projects/${project.id}/providers/apns/test`, { body: {}, token: project.token }),
      403,
      401,
    );
  });
});
