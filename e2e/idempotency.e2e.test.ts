import { randomUUID } from "node:crypto";
import { expectStatus, type Request } from "@herald/testing";
import { describe, expect } from "vitest";
import { expectProblem } from "./harness/expect-problem.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let deviceId = "";
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project();
  deviceId = (await project.register()).device.id;
});
logOnFailure(() => system);

const send = (notification: unknown): Request => ({ body: { notification } });

describe("idempotency keys", () => {
  const keyed = () => ({ "idempotency-key": randomUUID() });

  test("a repeated send is accepted once", async () => {
    const headers = keyed();
    const options = { headers, ...send({ title: "Once", targets: [deviceId] }) };
    const first = expectStatus(await project.call("POST /notifications", options), 202);
    const repeats = await Promise.all(Array.from({ length: 5 }, () => project.call("POST /notifications", options)));
    for (const repeat of repeats) {
      expect(repeat).toMatchObject({ status: 202, body: { data: { id: first.body.data.id } } });
      expect(repeat.headers.get("idempotent-replayed")).toBe("true");
    }
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    await project.final(first.body.data.id);
    const pushes = (await system.simulators.pushes()).filter(
      (push) => payloadOf(push).notification_id === first.body.data.id,
    );
    expect(pushes).toHaveLength(1);

    const other = { headers, ...send({ title: "Another", targets: [deviceId] }) };
    expect(expectProblem(await project.call("POST /notifications", other), 422).errors.join()).toMatch(
      /Idempotency-Key/,
    );
    // Another project may use the same key.
    expect((await (await system.project()).call("POST /notifications", other)).status).toBe(202);
  });

  test("concurrent repeats are accepted once", async () => {
    const options = { headers: keyed(), ...send({ title: "Race", targets: ["topic:empty"] }) };
    const answers = await Promise.all(Array.from({ length: 20 }, () => project.call("POST /notifications", options)));
    expect(answers.every(({ status }) => status === 202 || status === 409)).toBe(true);
    const ids = answers.filter(({ status }) => status === 202).map(({ body }) => body.data.id);
    expect(ids.length).toBeGreaterThan(0);
    expect(new Set(ids).size).toBe(1);
    for (const answer of answers.filter(({ status }) => status === 409))
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    await project.final(ids[0]);
    const race = (await project.notifications()).filter(({ title }) => title === "Race");
    expect(race).toHaveLength(1);
  });

  test("a repeated registration returns the same device, without its credential", async () => {
    const options = { headers: keyed(), body: { device: { token: apnsToken(), platform: "ios" } } };
    const first = expectStatus(await project.call("POST /devices", options), 201);
    expect(first.body.credential).toMatch(/^hdc_/);
    const repeat = await project.call("POST /devices", options);
    expect(repeat).toMatchObject({ status: 201, body: { data: { id: first.body.data.id } } });
    expect(repeat.headers.get("idempotent-replayed")).toBe("true");
    expect(repeat.text).not.toContain("hdc_");
    const own = await project.call(`GET /devices/${first.body.data.id}`, { token: first.body.credential });
    expect(own.status).toBe(200);
  });

  test("a refused request leaves its key free", async () => {
    const headers = keyed();
    expectProblem(await project.call("POST /notifications", { headers, ...send({ title: "x" }) }), 422);
    const mended = { headers, ...send({ title: "x", targets: ["topic:empty"] }) };
    expect((await project.call("POST /notifications", mended)).status).toBe(202);
  });
});
