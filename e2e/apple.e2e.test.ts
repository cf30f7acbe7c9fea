import { DeliveryTrace } from "@herald/contracts";
import { expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

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

const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push)?.notification_id === id);
const traceOf = async (id: string, device: string) =>
  DeliveryTrace.parse(expectStatus(await project.call(`GET /notifications/${id}/devices/${device}`), 200).body.data);

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
          "So it was not addressed.",
        ]),
      });
    }
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
