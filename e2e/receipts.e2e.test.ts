import { eventually, expectStatus, readPublished, request } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Receipts", ["apns", "fcm"]);
});
logOnFailure(() => system);

const app = (route: string, body: unknown) => request(`${system.gateway}/api/v1`, route, { body });

/** The payload of a notification's only push. */
const pushed = (id: string): Promise<Record<string, unknown>> =>
  eventually(async () => {
    const found = (await system.simulators.pushes()).find((push) => payloadOf(push).notification_id === id);
    if (found === undefined) throw new Error("it has not arrived");
    return found.payload as Record<string, unknown>;
  });

const report = async (id: string, verb: "received" | "dismissed" | "open", more: object = {}) => {
  const { token } = await pushed(id);
  return app(`PUT /notifications/${id}/${verb}`, { project_id: project.id, token, ...more });
};

const buttons = [
  { id: "track", title: "Track", link_to: "/orders/42" },
  { id: "later", title: "Later", opens: false },
];

describe("receipts and buttons", () => {
  test("are asked, reported once, counted, and published", async () => {
    const { device } = await project.register({ capabilities: ["receipts", "buttons", "of-tomorrow"], user_id: "u-1" });
    expect(device.capabilities).toEqual(["buttons", "receipts"]);
    const content = { title: "Shipped", targets: [`device:${device.id}`], kind: "order", receipts: true, buttons };
    const { id } = await project.send(content);
    await project.final(id);
    expect(await pushed(id)).toMatchObject({ receipt: 0, buttons, aps: { "mutable-content": 1 } });
    expect((await project.deliveries(id))[0]).toMatchObject({ receipt_asked: true });

    for (const _ of [1, 2]) expectStatus(await report(id, "received", { ago: 5 }), 204);
    expectStatus(await report(id, "dismissed"), 204);
    expectStatus(await report(id, "open", { button: "track" }), 204);
    expectStatus(await report(id, "open", { button: "later" }), 204);
    await eventually(async () =>
      expect((await project.notification(id)).counts).toMatchObject({
        ...{ accepted: 1, receipts_asked: 1, received: 1, dismissed: 1, opened: 1, buttons: { track: 1 } },
      }),
    );
    const trace = await project.call(`GET /notifications/${id}/devices/${device.id}`);
    const times = { received_at: expect.any(String), dismissed_at: expect.any(String), opened_at: expect.any(String) };
    expect(trace.body.data).toMatchObject({ receipt_asked: true, button: "track", ...times });
    expect(Date.parse(trace.body.data.received_at)).toBeLessThan(Date.parse(trace.body.data.opened_at));
    expect((await project.deliveries(id))[0]).toMatchObject({ button: "track", ...times });
    await eventually(async () => {
      const { body } = await project.call(`GET /stats?kind=order`);
      expect(body.data.totals).toMatchObject({ sent: 1, receipts_asked: 1, received: 1, dismissed: 1, opened: 1 });
      const ios = await project.call(`GET /stats?notification=${id}&platform=ios`);
      expect(ios.body.data.totals).toMatchObject({ receipts_asked: 1, received: 1, dismissed: 1 });
    });
    const events = await eventually(async () => {
      const found = await readPublished(system.broker, `push.evt.v1.${project.id}.notification.*`);
      const about = found.flatMap(({ subject, body }) => {
        // Events of the same moment share a message, in which each has its data.
        const parsed: unknown = JSON.parse(body);
        return (Array.isArray(parsed) ? parsed.map((one) => one.data) : [parsed]).flatMap((data) =>
          data.notification_id === id ? [[subject.split(".").at(-1), data] as const] : [],
        );
      });
      expect(about.map(([verb]) => verb)).toEqual(expect.arrayContaining(["received", "dismissed", "opened"]));
      return Object.fromEntries(about);
    });
    const facts = { platform: "ios", devices: [device.id], users: ["u-1"], kind: "order" };
    expect(events.received).toMatchObject(facts);
    expect(events.dismissed).toMatchObject(facts);
    expect(events.opened).toMatchObject({ device_id: device.id, button: "track" });
  });

  test("an open with a button of another notification counts without it", async () => {
    const { device } = await project.register({ capabilities: ["buttons"] });
    const { id } = await project.send({ title: "Hello", targets: [`device:${device.id}`], buttons });
    await project.final(id);
    expectStatus(await report(id, "open", { button: "of-another" }), 204);
    await eventually(async () => expect((await project.notification(id)).counts.opened).toBe(1));
    await eventually(async () => expect((await project.deliveries(id))[0]).not.toHaveProperty("button"));
    expect((await project.notification(id)).counts).not.toHaveProperty("buttons");
  });

  test("an Android device that draws gets a data message, and an older version of its app an ordinary one", async () => {
    const token = `android-${Date.now()}`;
    const identify = (more: object) =>
      app("PUT /identification", { project_id: project.id, identifier: token, platform: "android", ...more });
    const { body } = expectStatus(await identify({ capabilities: ["draws", "receipts", "buttons"] }), 201);
    const send = async () => {
      const { id } = await project.send({ title: "Drawn", targets: [`device:${body.data.id}`], receipts: 1, buttons });
      await project.final(id);
      const found = await eventually(async () => {
        const push = (await system.simulators.pushes()).find((one) => payloadOf(one).notification_id === id);
        if (push === undefined) throw new Error("it has not arrived");
        return push;
      });
      return { id, message: found };
    };
    const drawn = await send();
    expect(payloadOf(drawn.message)).toMatchObject({ receipt: "0", herald: expect.stringContaining("Drawn") });
    expect((await project.notification(drawn.id)).counts.receipts_asked).toBe(1);
    expectStatus(await identify({}), 200);
    const plain = await send();
    expect(payloadOf(plain.message)).not.toHaveProperty("herald");
    expect((await project.notification(plain.id)).counts.receipts_asked).toBe(0);
  });

  test("the project's share is the default, and a send may say otherwise", async () => {
    const own = await system.project("Asks by default");
    const admin = (route: string, body: unknown) => request(system.gateway, route, { body, token: system.adminToken });
    expectStatus(await admin(`PATCH /admin/v1/projects/${own.id}`, { project: { receipts: true } }), 200);
    const { device } = await own.register({ capabilities: ["receipts"] });
    const asked = async (more: object) => {
      const { id } = await own.send({ title: "Hello", targets: [`device:${device.id}`], ...more });
      return (await own.final(id)).counts.receipts_asked;
    };
    await eventually(async () => expect(await asked({})).toBe(1));
    expect(await asked({ receipts: false })).toBe(0);
    expect(await asked({ title: undefined, silent: true })).toBe(0);
  });

  test("receipts are exported, with the button of an open", async () => {
    const { device } = await project.register({ capabilities: ["receipts", "buttons"] });
    const { id } = await project.send({ title: "Hello", targets: [`device:${device.id}`], receipts: true, buttons });
    await project.final(id);
    for (const verb of ["received", "dismissed"] as const) expectStatus(await report(id, verb), 204);
    expectStatus(await report(id, "open", { button: "later" }), 204);
    const made = await request(system.gateway, `POST /admin/v1/projects/${project.id}/tokens`, {
      ...{ token: system.adminToken, body: { token: { name: "export", scopes: ["export"] } } },
    });
    const read = async (name: string) => {
      const url = `${system.gateway}/api/v1/exports/${name}?notification=${id}`;
      const answer = await fetch(url, { headers: { authorization: `Bearer ${made.body.token}` } });
      const text = await answer.text();
      return text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const row = { notification_id: id, device_id: device.id, platform: "ios", at: expect.any(String) };
    await eventually(async () =>
      expect(await read("receipts")).toEqual([
        { ...row, id: `${id}/${device.id}/d`, kind: "dismissed" },
        { ...row, id: `${id}/${device.id}/r`, kind: "received" },
      ]),
    );
    await eventually(async () => expect(await read("opens")).toMatchObject([{ button: "later" }]));
  });

  test("a report of a year ago counts at the time of the push, and one that is forged or foreign does not count", async () => {
    const { device } = await project.register({ capabilities: ["receipts"] });
    const { id } = await project.send({ title: "Hello", targets: [`device:${device.id}`], receipts: true });
    const { created_at: created } = await project.final(id);
    const { token } = await pushed(id);
    const other = await system.project("Stranger");
    const body = { project_id: project.id, token };
    const forged = `${String(token).slice(0, -4)}AAAA`;
    for (const verb of ["received", "dismissed"])
      for (const wrong of [
        { ...body, project_id: other.id },
        { ...body, token: forged },
      ])
        expectStatus(await app(`PUT /notifications/${id}/${verb}`, wrong), 403);
    expectStatus(await app(`PUT /notifications/${id}/received`, { ...body, ago: -1 }), 422);
    expectStatus(await app(`PUT /notifications/${id}/received`, { ...body, button: "track" }), 422);
    expectStatus(await app(`PUT /notifications/${id}/open`, { ...body, button: "a b" }), 422);
    expectStatus(await app(`PUT /notifications/${id}/received`, { ...body, ago: 31_536_000 }), 204);
    await eventually(async () => expect((await project.notification(id)).counts.received).toBe(1));
    const [delivery] = await project.deliveries(id);
    const seconds = (Date.parse(delivery?.received_at ?? "") - Date.parse(created)) / 1_000;
    expect(Math.abs(seconds)).toBeLessThan(60);
    expect((await project.notification(id)).counts.dismissed).toBe(0);
  });
});
