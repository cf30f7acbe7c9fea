import { Herald } from "@herald/client";
import { Scope } from "@herald/contracts";
import { eventually, expectStatus, request } from "@herald/testing";
import { describe, expect } from "vitest";
import { apnsToken, type Content, type Project } from "./harness/project.ts";
import { newAddress } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let herald: Herald;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Half an emoji", ["apns", "fcm", "webpush"]);
  const token = { name: "all", scopes: Scope.options };
  const { body } = expectStatus(await system.admin(`POST /projects/${project.id}/tokens`, { body: { token } }), 201);
  herald = new Herald({ url: system.gateway, token: body.token, maxRetries: 0 });
});
logOnFailure(() => system);

/** As a program leaves it that cuts a text between code units. */
const half = "Hi 😀".slice(0, -1);
const mended = "Hi \ufffd";

/** Every text in a value, names of fields too. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...textsIn(inner)]);
};

/** The texts of the pushes of a send. */
const pushed = async (id: string, count: number): Promise<string[]> => {
  await project.final(id);
  const pushes = await eventually(async () => {
    const found = (await system.simulators.pushes()).filter((push) => payloadOf(push)?.notification_id === id);
    expect(found).toHaveLength(count);
    return found;
  });
  return pushes.flatMap(({ payload }) => textsIn(payload));
};

const sent = async (content: Content, count = 1): Promise<string[]> => {
  const { id } = await project.send(content);
  const texts = await pushed(id, count);
  expect(texts.filter((text) => !text.isWellFormed())).toEqual([]);
  return texts;
};

describe("half an emoji", () => {
  test("in any text of a notification reaches no provider", async () => {
    const devices = [];
    for (const platform of ["ios", "android", "web"] as const) {
      const address = await newAddress(system.simulators, platform);
      devices.push((await project.register({ platform, ...address, topics: ["all-kinds"] })).device.id);
    }
    const targets = ["topic:all-kinds"];
    const texts = await sent({ title: half, body: half, data: { note: half }, thread: half, targets }, 3);
    expect(texts.filter((text) => text === mended).length).toBeGreaterThanOrEqual(3 * 3);
    await sent({ title: "Hi", localizations: { en: { title: half, body: half } }, targets }, 3);
    const overrides = {
      ios: { own: { deep: [half] } },
      android: { android: { notification: { ticker: half } } },
      web: { own: half },
    };
    await sent({ title: "Hi", ...overrides, targets } as Content, 3);
    await sent({ title: "Hi", buttons: [{ id: "yes", title: half, link_to: "/yes" }], targets } as Content, 3);
  });

  test("in a template, its variables, recipients and values of devices reaches no provider", async () => {
    const { device } = await project.register({ user_id: "ann", metadata: { name: half } });
    await herald.templates.put("half", {
      title: `${half} {{ name }}`,
      body: "{{ device.metadata.name }}",
      variables: { name: { type: "string", fallback: half } },
    });
    await herald.templates.publish("half");
    const targets = [`device:${device.id}`];
    expect(await sent({ template: "half", targets })).toContain(`${mended} ${mended}`);
    expect(await sent({ template: "half", variables: { name: half }, targets })).toContain(`${mended} ${mended}`);
    const recipients = [{ target: "user:ann", variables: { name: half } }];
    expect(await sent({ template: "half", recipients })).toContain(`${mended} ${mended}`);
    const { id } = await project.send({ template: "half", recipients: { upload: "user" } });
    await herald.notifications.uploadRecipients(id, () => new Blob([JSON.stringify(recipients[0])]));
    expect(await pushed(id, 1)).toContain(`${mended} ${mended}`);
  });

  test("in metadata is stored as what targets find", async () => {
    const { device } = await project.register({ metadata: { city: half } });
    const [line] = [{ token: apnsToken(), platform: "ios", metadata: { city: half } }];
    expectStatus(await project.call("PUT /devices", { body: { devices: [line] } }), 200);
    const match = new URLSearchParams({ match: `metadata:city=${mended}` });
    const found = expectStatus(await project.call(`GET /devices?${match}`), 200).body.data;
    expect(found).toHaveLength(2);
    expect(found.map(({ metadata }: { metadata: object }) => metadata)).toEqual([{ city: mended }, { city: mended }]);
    expect(await sent({ title: "Hi", targets: [`metadata:city=${half}`] }, 2)).toContain("Hi");
    expect(await sent({ title: "Hi", targets: [`condition:metadata.city == '${half}'`] }, 2)).toContain("Hi");
    expect((await project.devices()).find(({ id }) => id === device.id)?.metadata).toEqual({ city: mended });
  });

  test("in an identity, or in the name of a field, is refused", async () => {
    const { device } = await project.register();
    const content = { title: "Hi", targets: ["all"] };
    const send = (more: object) =>
      project.call("POST /notifications", { body: { notification: { ...content, ...more } } });
    const register = (more: object) =>
      project.call("POST /devices", { body: { device: { token: apnsToken(), platform: "ios", ...more } } });
    const refused: [string, ReturnType<Project["call"]>][] = [
      ["user_id", register({ user_id: half })],
      ["token", register({ token: half, platform: "android" })],
      ["topics", register({ topics: [half] })],
      ["installation_id", register({ installation_id: half })],
      ["metadata", register({ metadata: { [half]: 1 } })],
      ["targets", send({ targets: [`user:${half}`] })],
      ["kind", send({ kind: half })],
      ["labels.a", send({ labels: { a: half } })],
      ["collapse_id", send({ collapse_id: half })],
      ["data", send({ data: { [half]: "a" } })],
      [
        "identifier",
        request(system.gateway, "PATCH /api/v1/metadata", {
          body: { project_id: project.id, identifier: half, metadata: {} },
        }),
      ],
      ["query", project.call("GET /devices?match=metadata:city=%ED%A0%BD")],
    ];
    for (const [field, answer] of refused) expect(expectStatus(await answer, 422).body.errors.join()).toContain(field);
    expectStatus(await project.call(`PUT /devices/${device.id}/topics/%ED%A0%BD`), 400);
  });
});
