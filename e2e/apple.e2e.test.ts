import { DeliveryTrace, type Device } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { withRepeat } from "./harness/throttles.ts";

let system: System;
let project: Project;
const main = "com.example.e2e";
const driver = "com.example.driver";

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Apple");
  await system.putProvider(project, "apns", { bundle_ids: [driver] });
});
logOnFailure(() => system);

/** A registered device of an iPhone, with its tokens for these push types. */
const iphone = async (
  types: "all" | readonly string[],
  more: { topics?: string[]; provider?: "fcm"; token?: string } = {},
) => {
  const { alert = "", ...tokens } = await system.simulators.phone(main, { controls: ["gate"] });
  const { device, credential } = await project.register({ token: alert, ...more });
  const store = async ([type, token]: [string, string]) =>
    expectStatus(
      await project.call(`PUT /devices/${device.id}/tokens/${type}`, { body: { token: { token } }, token: credential }),
      204,
    );
  await Promise.all(
    Object.entries(tokens)
      .filter(([type]) => types === "all" || types.includes(type))
      .map(store),
  );
  return { device, credential, tokens };
};

const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push)?.notification_id === id);
const traceOf = async (id: string, device: string) =>
  DeliveryTrace.parse(expectStatus(await project.call(`GET /notifications/${id}/devices/${device}`), 200).body.data);

describe("push types", () => {
  const topics = ["push-types"];
  let phone: Awaited<ReturnType<typeof iphone>>;
  let without: Device;
  test.beforeAll(async () => {
    phone = await iphone("all", { topics });
    without = (await project.register({ topics })).device;
  });

  test.for([
    ["voip", undefined, "voip", "0"],
    ["pushtotalk", undefined, "voip-ptt", "0"],
    ["complication", undefined, "complication", expect.not.stringMatching(/^0$/)],
    ["widgets", undefined, "push-type.widgets", expect.not.stringMatching(/^0$/)],
    ["controls", "gate", "push-type.controls", expect.not.stringMatching(/^0$/)],
    ["location", undefined, "location-query", expect.not.stringMatching(/^0$/)],
    ["fileprovider", undefined, "pushkit.fileprovider", expect.not.stringMatching(/^0$/)],
  ] as const)("%s goes to its own token under its own topic", async ([pushType, pushName, ending, expiration]) => {
    const { device, tokens } = phone;
    const reaches = async (targets: string[]) => {
      const { id } = await project.send({
        ...{ push_type: pushType, targets, data: { call: "17" } },
        ...(pushName !== undefined && { push_name: pushName }),
      });
      expect((await project.final(id)).counts).toMatchObject({ devices: 1, accepted: 1 });
      const [push, ...more] = await pushesOf(id);
      expect(more).toEqual([]);
      expect(push).toMatchObject({
        token: tokens[pushName === undefined ? pushType : `${pushType}/${pushName}`],
        status: 200,
        payload: { data: { call: "17" } },
        headers: {
          "apns-push-type": pushType,
          "apns-topic": `${main}.${ending}`,
          "apns-priority": "10",
          "apns-expiration": expiration,
        },
      });
      const trace = await traceOf(id, without.id);
      expect(trace.status).toBe("not_addressed");
      const key = pushName === undefined ? pushType : `${pushType}/${pushName}`;
      expect(trace.explanation).toContain(`The device has no token for \`${key}\` pushes.`);
    };
    await Promise.all([reaches(["topic:push-types"]), reaches([device.id, without.id])]);
  });

  test("a dead token ends alone, and the device gets other pushes", async () => {
    const { device, tokens } = await iphone(["voip", "location"]);
    await system.simulators.script([{ provider: "apns", tokenPrefix: tokens.voip ?? "-", status: 410 }]);
    const { id } = await project.send({ push_type: "voip", targets: [device.id] });
    expect(await project.final(id)).toMatchObject({ counts: { failed: 1 }, failures: { unregistered: 1 } });
    await eventually(async () => {
      const { data } = (await project.call(`GET /devices/${device.id}`)).body;
      expect(data.status).toBe("active");
      expect(data.tokens.map(({ type }: { type: string }) => type)).toEqual(["location"]);
    });
    const { id: next } = await project.send({ title: "Hello", targets: [device.id] });
    expect((await project.final(next)).counts.accepted).toBe(1);
    const { id: none } = await project.send({ push_type: "voip", targets: [device.id] });
    expect((await project.final(none)).counts.devices).toBe(0);
  });

  test("a refused push type stops no alert", async () => {
    const { device, tokens } = await iphone(["location"]);
    await system.simulators.script([
      { provider: "apns", tokenPrefix: tokens.location ?? "-", status: 400, reason: "TopicDisallowed" },
    ]);
    const { id } = await project.send({ push_type: "location", targets: [device.id] });
    expect((await project.final(id)).failures).toEqual({ "push-type-refused": 1 });
    const { id: next } = await project.send({ title: "Hello", targets: [device.id] });
    expect((await project.final(next)).counts.accepted).toBe(1);
  });

  test("APNs serves the token of a device that has FCM for the rest", async () => {
    const { device, tokens } = await iphone(["voip"], { provider: "fcm", token: `fcm-${Date.now()}` });
    const { id } = await project.send({ push_type: "voip", targets: [device.id] });
    expect((await project.final(id)).counts.accepted).toBe(1);
    expect(await pushesOf(id)).toMatchObject([{ provider: "apns", token: tokens.voip }]);
  });

  test("statistics and events are by push type", async () => {
    const { device } = await iphone(["widgets"]);
    const { id } = await project.send({ push_type: "widgets", kind: "score", targets: [device.id] });
    await project.final(id);
    await eventually(async () => {
      const { data } = (await project.call("GET /stats?by=push_type")).body;
      expect(data.groups).toContainEqual(expect.objectContaining({ value: "widgets" }));
      const { body } = await project.call("GET /stats?push_type=widgets");
      expect(body.data.totals.sent).toBeGreaterThanOrEqual(1);
    });
  });

  test("wrong requests are refused, and nothing is pushed", async () => {
    const { device, credential, tokens } = await iphone(["voip"]);
    const { device: other, credential: otherCredential } = await project.register();
    const put = (path: string, body: unknown, token = credential) =>
      project.call(`PUT /devices/${path}`, { body: body as object, token });
    const good = { token: { token: "ab".repeat(32) } };
    expectStatus(await put(`${device.id}/tokens/liveactivity`, good), 422);
    expectStatus(await put(`${device.id}/tokens/__proto__`, good), 422);
    expectStatus(await put(`${device.id}/tokens/controls`, good), 422);
    expectStatus(await put(`${device.id}/tokens/voip/x`, good), 422);
    expectStatus(await put(`${device.id}/tokens/controls/a%0d%0ab`, good), 422);
    expectStatus(await put(`${device.id}/tokens/voip`, { token: { token: "zz" } }), 422);
    expectStatus(await put(`${other.id}/tokens/voip`, good), 403);
    expectStatus(await put(`${other.id}/tokens/voip`, { token: { token: tokens.voip } }, otherCredential), 409);
    for (const wrong of [
      { push_type: "voip", title: "Hello" },
      { push_type: "voip", silent: true },
      { push_type: "controls" },
      { push_type: "mdm" },
      { push_type: "voip", data: { fill: "x".repeat(5_200) } },
    ]) {
      const refused = await project.call("POST /notifications", {
        body: { notification: { targets: [device.id], ...wrong } },
      });
      expectStatus(refused, 422);
    }
    expect((await system.simulators.pushes()).filter(({ token }) => Object.values(tokens).includes(token))).toEqual([]);
  });
});

describe("two apps of one team", () => {
  test("each gets its pushes under its own topic", async () => {
    const [ofMain, ofDriver] = await Promise.all([system.simulators.phone(main), system.simulators.phone(driver)]);
    const topics = ["apps"];
    const { device: first } = await project.register({ token: ofMain.alert ?? "", topics });
    const { device: second } = await project.register({ token: ofDriver.alert ?? "", topics, app: driver });
    expect(second.app).toBe(driver);

    const { id } = await project.send({ title: "Hello", targets: ["topic:apps"] });
    expect((await project.final(id)).counts).toMatchObject({ devices: 2, accepted: 2 });
    const topicsOf = (await pushesOf(id)).map(({ token, headers }) => [token, headers["apns-topic"]]);
    expect(topicsOf.toSorted()).toEqual(
      [
        [ofMain.alert, main],
        [ofDriver.alert, driver],
      ].toSorted(),
    );

    for (const targets of [["topic:apps"], [first.id, second.id]]) {
      const { id: narrow } = await project.send({ title: "Drivers", targets, app: driver });
      expect((await project.final(narrow)).counts).toMatchObject({ devices: 1, accepted: 1 });
      expect(await traceOf(narrow, first.id)).toMatchObject({
        status: "not_addressed",
        explanation: expect.arrayContaining([
          `It is for devices of the app \`${driver}\`, and the device names none.`,
          "So nothing was sent.",
        ]),
      });
    }
  });

  test("a push that waits keeps its app", async () => {
    const { alert = "" } = await system.simulators.phone(driver);
    const { device } = await project.register({ token: alert, app: driver });
    await system.simulators.script([
      { provider: "apns", tokenPrefix: alert, status: 503, times: 1, headers: { "retry-after": "1" } },
    ]);
    const { id } = await project.send({ title: "Hello", targets: [device.id] });
    expect((await project.final(id, withRepeat)).counts.accepted).toBe(1);
    expect((await pushesOf(id)).map(({ status, headers }) => [status, headers["apns-topic"]])).toEqual([
      [503, driver],
      [200, driver],
    ]);
  });

  test("an app that the settings do not list, or that Apple refuses, stops no other", async () => {
    const topics = ["refused"];
    const register = async (app?: string) => {
      const { alert = "" } = await system.simulators.phone(app ?? main);
      return (await project.register({ token: alert, topics, ...(app !== undefined && { app }) })).device;
    };
    const unknown = await register("com.example.unknown");
    const refused = await register(driver);
    const good = await register();
    await system.simulators.script([
      { provider: "apns", tokenPrefix: refused.token, status: 400, reason: "TopicDisallowed" },
    ]);
    const { id } = await project.send({ title: "Hello", targets: ["topic:refused"] });
    expect(await project.final(id)).toMatchObject({
      counts: { devices: 3, accepted: 1, failed: 2 },
      failures: { "app-not-configured": 2 },
    });
    expect((await traceOf(id, good.id)).status).toBe("accepted");
    expect(await traceOf(id, unknown.id)).toMatchObject({ attempts: [{ reason: "app-not-configured" }] });
    const { id: next } = await project.send({ title: "Still", targets: [good.id] });
    expect((await project.final(next)).counts.accepted).toBe(1);
  });
});
