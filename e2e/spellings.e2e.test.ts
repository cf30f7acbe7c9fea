import { Herald } from "@herald/client";
import { eventually, expectStatus, request } from "@herald/testing";
import { describe, expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let herald: Herald;
test.beforeEach(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Spellings", ["apns", "fcm", "webpush"]);
  herald = new Herald({ url: system.gateway, token: project.token, maxRetries: 0 });
});
logOnFailure(() => system);

const client = (body: Record<string, unknown>, method = "PUT /api/v1/identification") =>
  request(system.gateway, method, { body: { project_id: project.id, ...body } });

const identify = async (body: Record<string, unknown>, credential?: string) => {
  const token = credential === undefined ? {} : { token: credential };
  const options = { ...token, body: { project_id: project.id, ...body } };
  return expectStatus(await request(system.gateway, "PUT /api/v1/identification", options), 200, 201).body;
};

const putDevices = async (...devices: object[]) =>
  expectStatus(await project.call("PUT /devices", { body: { devices } }), 200).body.data;

const importLines = async (...lines: object[]) => {
  const { id } = await herald.imports.create({ format: "herald" });
  await herald.imports.upload(id, () => new Blob([lines.map((line) => JSON.stringify(line)).join("\n")]));
  const report = await eventually(async () => {
    const found = await herald.imports.get(id);
    expect(found.status).toBe("completed");
    return found;
  });
  const errors = [];
  for await (const error of herald.imports.errors(id)) errors.push(error);
  return { report, errors };
};

/** The tokens that got a push of the send. */
const reached = async (content: Parameters<Project["send"]>[0]): Promise<string[]> => {
  const { id } = await project.send(content);
  await project.final(id);
  return (await project.deliveries(id)).map(({ device_id }) => device_id).sort();
};

const listed = async (query: Record<string, string>): Promise<string[]> =>
  expectStatus(await project.call(`GET /devices?${new URLSearchParams(query)}`), 200).body.data.map(
    ({ id }: { id: string }) => id,
  );

describe("an APNs token in upper case and in lower case", () => {
  test("is one device, whichever way it comes in", async () => {
    const token = apnsToken("00ab");
    const upper = token.toUpperCase();
    const { device, credential } = await project.register({ token: upper, user_id: "ann" });
    expect(device.token).toBe(token);
    expect((await project.register({ token, user_id: "ann" })).device.id).toBe(device.id);
    expect((await identify({ identifier: upper, platform: "ios" })).data.id).toBe(device.id);
    expect(await putDevices({ token: upper, platform: "ios" }, { token, platform: "ios" })).toMatchObject([
      { id: device.id },
      { id: device.id },
    ]);
    const { report } = await importLines({ token: upper, platform: "ios" }, { token, platform: "ios" });
    expect(report).toMatchObject({ created: 0, refused: 0 });
    const change = { identifier: upper, metadata: { plan: "pro" } };
    expectStatus(await client(change, "PATCH /api/v1/metadata"), 200);
    expect(await project.devices()).toMatchObject([{ id: device.id, token, metadata: { plan: "pro" } }]);

    // Another token replaces it, by the app and by the backend.
    const [second, third] = [apnsToken("00cd"), apnsToken("00ef")];
    expect((await project.register({ token, user_id: "ann" })).device.id).toBe(device.id);
    const { credential: current = credential } = await project.register({ token, user_id: "ann" });
    const renewed = { identifier: second.toUpperCase(), previous_identifier: upper, platform: "ios" };
    expect((await identify(renewed, current)).data.id).toBe(device.id);
    const body = { device: { token: third.toUpperCase() } };
    expectStatus(await project.call(`PATCH /devices/${device.id}`, { body }), 200);
    expect(await project.devices()).toMatchObject([{ id: device.id, token: third }]);
  });

  test("is found by every target, filter and recipient, and gets one push", async () => {
    const token = apnsToken("00ab");
    const upper = token.toUpperCase();
    const { device } = await project.register({ token });
    const only = [device.id];
    expect(await listed({ token: upper })).toEqual(only);
    expect(await listed({ match: `token:${upper}` })).toEqual(only);
    const body = { token: { name: "exports", scopes: ["export"] } };
    const { token: exporter } = expectStatus(
      await system.admin(`POST /projects/${project.id}/tokens`, { body }),
      201,
    ).body;
    const exported = [];
    const own = new Herald({ url: system.gateway, token: exporter, maxRetries: 0 });
    for await (const row of own.exports.devices({ token: upper })) exported.push(row.id);
    expect(exported).toEqual(only);
    expect(await reached({ title: "Both", targets: [`token:${upper}`, `token:${token}`] })).toEqual(only);
    const recipients = [upper, token].map((one) => ({ target: `token:${one}` }));
    expect(await reached({ title: "Inline", recipients })).toEqual(only);
    const { id } = await project.send({ title: "Uploaded", recipients: { upload: "token" } });
    await herald.notifications.uploadRecipients(
      id,
      () => new Blob([recipients.map((one) => JSON.stringify(one)).join("\n")]),
    );
    await project.final(id);
    expect((await project.deliveries(id)).map(({ device_id }) => device_id)).toEqual(only);
    expect(await system.simulators.pushes({ token })).toHaveLength(3);
    expect(await system.simulators.pushes({ token: upper })).toEqual([]);
    const test = { body: { token: upper } };
    expectStatus(await system.admin(`POST /projects/${project.id}/providers/apns/test`, test), 200);
    expect(await system.simulators.pushes({ token })).toHaveLength(4);
  });

  test("is one further token", async () => {
    const token = apnsToken("00ab");
    const [one, other] = [await project.register({}), await project.register({})];
    const put = (id: string, sent: string) =>
      project.call(`PUT /devices/${id}/tokens/voip`, { body: { token: { token: sent } } });
    expectStatus(await put(one.device.id, token.toUpperCase()), 204);
    expectStatus(await put(other.device.id, token), 409);
    await reached({ push_type: "voip", data: { call: "1" }, targets: [`device:${one.device.id}`] });
    expect(await system.simulators.pushes({ token })).toHaveLength(1);
  });
});

test("tokens of FCM that differ in case are two devices", async () => {
  const token = `fGh:APA91b${apnsToken("ab")}`;
  const devices = [token, token.toUpperCase(), apnsToken("00ab").toUpperCase()];
  for (const one of devices) await project.register({ token: one, platform: "android" });
  expect((await project.devices()).map((one) => one.token)).toEqual(devices);
  expect(await listed({ token: token.toUpperCase() })).toHaveLength(1);
  expect(await reached({ title: "One", targets: [`token:${token}`] })).toHaveLength(1);
  expect(await system.simulators.pushes({ token })).toHaveLength(1);
});

describe("a Web Push endpoint", () => {
  test("with its host in upper case, the default port or a fragment is one device", async () => {
    const { keys } = await system.simulators.subscribe();
    const padded = { p256dh: `${keys.p256dh}=`, auth: `${keys.auth}==` };
    const spellings = [
      "https://push.example/Wpush/v2/aB?x=%2F",
      "https://PUSH.example/Wpush/v2/aB?x=%2F",
      "HTTPS://push.example:443/Wpush/v2/aB?x=%2F",
      "https://push.example/Wpush/./v2/aB?x=%2F#top",
    ];
    const ids = new Set<string>();
    for (const token of spellings) {
      ids.add((await project.register({ platform: "web", token, keys: padded })).device.id);
      ids.add((await identify({ platform: "web", identifier: token, keys })).data.id);
      expect(await listed({ token })).toEqual([...ids]);
      expect(await listed({ match: `token:${token}` })).toEqual([...ids]);
    }
    expect(ids.size).toBe(1);
    expect(await project.devices()).toMatchObject([{ token: spellings[0] }]);
    await project.register({ platform: "web", token: "https://push.example/wpush/v2/aB?x=%2F", keys });
    expect(await project.devices()).toHaveLength(2);
  });

  test.for([
    ["https://permanently-removed.invalid/fcm/send/abc", "does not exist"],
    ["https://push.home.arpa/a", "name that is never public"],
    ["https://router.local/a", "name that is never public"],
    ["https://localhost/a", "not a full name"],
    ["https://192.168.1.5/a", "is an address"],
    ["https://[fd00::1]/a", "is an address"],
    ["https://push.example:8443/a", "port is not 443"],
    ["http://push.example/a", "an https URL"],
    ["https://ann:secret@push.example/a", "a user"],
  ])("to which nothing can be sent is refused everywhere: %s", async ([token = "", says = ""]) => {
    const { keys } = await system.simulators.subscribe();
    const { device } = await project.register({ platform: "web", token: "https://push.example/a", keys });
    const web = { platform: "web", keys };
    const wrong = [
      await project.call("POST /devices", { body: { device: { ...web, token } } }),
      await client({ ...web, identifier: token }),
      await project.call(`PATCH /devices/${device.id}`, { body: { device: { token, keys } } }),
    ];
    const named = ["device.token", "identifier", "device.token"];
    for (const [at, answer] of wrong.entries())
      expect(expectStatus(answer, 422).body.errors).toEqual([
        expect.stringMatching(new RegExp(`^${named[at]}: .*${says}`)),
      ]);
    const problem = { code: "validation-failed", detail: expect.stringContaining(says) };
    expect(await putDevices({ ...web, token })).toMatchObject([
      { result: "refused", problems: [{ detail: problem.detail }] },
    ]);
    const { report, errors } = await importLines({ ...web, token });
    expect(report).toMatchObject({ refused: 1, created: 0 });
    expect(errors).toMatchObject([{ line: 1, field: "token", reason: problem.detail }]);
    expect(await project.devices()).toHaveLength(1);
  });

  test("of the project's own push service may be anywhere", async () => {
    const { endpoint, keys } = await system.simulators.subscribe();
    expect(new URL(endpoint).port).not.toBe("");
    await project.register({ platform: "web", token: endpoint, keys });
    expect(await putDevices({ platform: "web", token: endpoint, keys })).toMatchObject([{ result: "unchanged" }]);
  });
});
