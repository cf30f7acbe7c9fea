import { consume, defineHandler } from "@herald/bus";
import { type GroupedSend, readGroup, SendGroupV1, SendV1, sendGroupOf } from "@herald/contracts";
import { currentRequestId } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { adminToken, apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";
import type { World } from "./route-case.ts";
import { table } from "./route-table.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterAll(() => system.stop());

const send = (notification: unknown, token = project.token) =>
  system.call("POST /api/v1/notifications", { token, body: { notification } });

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

describe("what is refused, in words", () => {
  test.each<[unknown, string[]]>([
    [{ title: "Hello", targets: [] }, ["notification.targets: at least one target is required"]],
    [{ title: "Hello" }, ["notification.targets: either `targets` or `recipients` is required, not both"]],
    [
      { targets: ["all"] },
      ["notification: a `title` or a `body` is required unless `silent` is true or `push_type` is set"],
    ],
    [
      { title: "x".repeat(257), body: "", targets: ["topic:a b"], ttl: -1 },
      [
        "notification.title: must be at most 256 characters",
        "notification.body: may not be empty",
        "notification.targets.0: is not a target: as a topic's name it must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -",
        "notification.ttl: must be at least 0",
      ],
    ],
    [{ title: "Hello", targets: ["all"], tilte: "x" }, ["notification.tilte: unknown field; did you mean `title`?"]],
    [
      { title: "Hello", targets: ["all"], send_at: "2030-01-31 09:00" },
      [
        "notification.send_at: must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00+01:00, or one without it beside `time_zone`",
      ],
    ],
    [
      { title: "Hello", targets: ["all"], send_at: inDays(31) },
      ["notification.send_at: must be at most 30 days ahead"],
    ],
    [
      { title: "Hello", targets: ["all", "condition:'news' in topic", "conditions:x"] },
      [
        "notification.targets.1: is not a target: at character 11: expected `topics`, found `topic`",
        "notification.targets.2: is not a target: known prefixes are device:, topic:, token:, user:, metadata:, identifiers:, condition:",
      ],
    ],
    [
      { title: { $ne: null }, targets: { $gt: "" } },
      ["notification.title: must be a string", "notification.targets: must be a list"],
    ],
  ])("%j", async (notification, errors) => {
    const answer = await send(notification);
    expect([answer.status, answer.problem.errors]).toEqual([422, errors]);
    expect(answer.problem).toMatchObject({ type: "/docs/errors#validation-failed", status: 422 });
    expect(answer.problem.instance).toBe(answer.headers.get("x-request-id"));
  });

  test("a payload that no provider of the project would take", async () => {
    const heavy = { title: "Hello", body: "ä".repeat(2_000), targets: ["all"], data: { more: "x".repeat(500) } };
    expect((await send(heavy)).status).toBe(202);
    const body = table.putApnsProvider?.body?.({} as World);
    await system.call(`PUT /admin/v1/projects/${project.id}/providers/apns`, { token: adminToken, body });
    const refused = await eventually(async () => {
      const answer = await send(heavy);
      expect(answer.status).toBe(422);
      return answer;
    });
    expect(refused.problem.errors).toEqual([
      expect.stringMatching(/^notification: renders to \d+ bytes for ios, at most 4096 fit/),
    ]);
  });

  test("a body that is too large, not JSON, not UTF-8 or not announced as JSON", async () => {
    const { token } = project;
    const post = (body: string, headers: Record<string, string> = {}) =>
      system.call("POST /api/v1/notifications", { token, body, headers });
    expect((await post(JSON.stringify({ notification: { title: "x".repeat(1_100_000) } }))).status).toBe(413);
    expect((await post("{")).status).toBe(400);
    expect((await post("[]")).status).toBe(422);
    expect((await post("null")).status).toBe(422);
    expect((await post("{}", { "content-type": "text/plain" })).status).toBe(415);
    expect((await post('{"__proto__":{}}')).status).toBe(422);
    const empty = await system.call("POST /api/v1/notifications", { token });
    expect([empty.status, empty.problem.errors]).toEqual([422, ["notification: is required and must be an object"]]);
  });

  test("a command that would not fit a message, although its body was small enough", async () => {
    // Each 1e20 grows from four characters to twenty-one when it is serialized again.
    const numbers = `[${Array.from({ length: 2_900 }, () => "1e20").join(",")}]`;
    const targets = JSON.stringify(Array.from({ length: 1_000 }, () => `token:${"f".repeat(940)}`));
    const body = `{"notification":{"title":"Hello","targets":${targets},"web":{"numbers":${numbers}}}}`;
    const answer = await system.call("POST /api/v1/notifications", { token: project.token, body });
    expect(answer.status).toBe(422);
    expect(answer.problem.errors[0]).toContain("is larger than");
  });
});

describe("what is accepted", () => {
  test("has the status scheduled and its time when it is to be sent later", async () => {
    const sendAt = inDays(29);
    const scheduled = await send({ title: "Hello", targets: ["all"], send_at: sendAt });
    expect(scheduled.body.data).toMatchObject({ status: "scheduled", send_at: sendAt });
    const past = await send({ title: "Hello", targets: ["all"], send_at: "2020-01-01T00:00:00+02:00" });
    expect(past.body.data.status).toBe("accepted");
    expect((await send({ silent: true, targets: ["all"] })).status).toBe(202);
  });

  test("under load every send is accepted once, under an id of its own", async () => {
    // Not more at once: a busy machine would need as long for them as a request waits for its answer.
    const titles = Array.from({ length: 250 }, (_, index) => `Send ${index}`);
    const answers = await Promise.all(titles.map((title) => send({ title, targets: ["all"] })));
    expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
    expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(250);
  });
});

test("sends to few devices that come together share messages, each with the request that it belongs to", async () => {
  const own = await system.project();
  const groups: { groupId: string; sends: GroupedSend[] }[] = [];
  const handler = defineHandler({
    durable: "dispatch-send-groups",
    message: SendGroupV1,
    handle: async ({ data }) => void groups.push({ groupId: data.groupId, sends: readGroup(data).sends }),
  });
  const consuming = await consume(system.bus, [handler]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  const wanted = Array.from({ length: 50 }, (_, index) => `few-${index}`);
  const answers = await Promise.all(
    wanted.map((id) =>
      system.call("POST /api/v1/notifications", {
        token: own.token,
        body: { notification: { title: id, targets: [`token:${id}`] } },
        headers: { "x-request-id": id },
      }),
    ),
  );
  expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
  await eventually(() => expect(groups.flatMap(({ sends }) => sends)).toHaveLength(wanted.length));
  await consuming.stop(2_000);
  expect(groups.length).toBeLessThan(wanted.length);
  for (const { groupId, sends } of groups)
    for (const { notificationId, content, origin } of sends) {
      expect(sendGroupOf(notificationId)).toBe(groupId);
      expect(origin?.requestId).toBe(content.title);
      const answer = answers.find(({ body }) => body.data.id === notificationId);
      expect(answer?.body.data).toMatchObject({ title: content.title, status: "accepted" });
    }
});

test("each send of a shared batch travels under the request id of its own request", async () => {
  const own = await system.project();
  const ids = new Map<string, string | undefined>();
  const handler = defineHandler({
    durable: "dispatch-start",
    message: SendV1,
    handle: async ({ data }) => void ids.set(data.content.title ?? "", currentRequestId()),
  });
  const consuming = await consume(system.bus, [handler]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  const sent = Array.from({ length: 100 }, (_, index) => `request-${index}`);
  await Promise.all(
    sent.map((id) =>
      system.call("POST /api/v1/notifications", {
        token: own.token,
        body: { notification: { title: id, targets: ["all"] } },
        headers: { "x-request-id": id },
      }),
    ),
  );
  await eventually(() => expect(sent.filter((id) => ids.get(id) !== id)).toEqual([]));
  await consuming.stop(2_000);
});

describe("the state of a notification", () => {
  test("has the opens that analytics counted, in lists, alone and device by device", async () => {
    const world = await createWorld(system, ["notification", "device"]);
    const { token } = world.project;
    const { id } = world.notification;
    const other = await system.call("POST /api/v1/devices", {
      token,
      body: { device: { token: apnsToken(), platform: "ios" } },
    });
    const openedAt = new Date().toISOString();
    system.peers.opens.set(`${id}/${world.device.id}`, openedAt);
    const notification = system.peers.notifications.get(id);
    if (notification === undefined) throw new Error("dispatch does not know it");
    const read = async () => (await system.call(`GET /api/v1/notifications/${id}`, { token })).body.data;
    const times = { first_opened_at: openedAt, last_opened_at: openedAt };
    expect(await read()).toMatchObject({ counts: { opened: 1 }, opens: { open_rate: null, ...times } });
    const counts = { ...notification.value.counts, devices: 3, accepted: 3 };
    notification.value = { ...notification.value, counts };
    expect(await read()).toMatchObject({ counts: { opened: 1 }, opens: { open_rate: 0.3333, ...times } });
    const listed = (await system.call("GET /api/v1/notifications", { token })).body.data;
    expect(listed[0]).toMatchObject({ counts: { opened: 1 }, opens: { open_rate: 0.3333, ...times } });
    const { body } = await system.call(`GET /api/v1/notifications/${id}/deliveries?status=accepted`, { token });
    expect(body.data).toMatchObject([
      { device_id: world.device.id, opened_at: openedAt },
      { device_id: other.body.data.id },
    ]);
    expect(body.data[1]).not.toHaveProperty("opened_at");
    const none = await system.call(`GET /api/v1/notifications/${id}/deliveries?status=failed`, { token });
    expect(none.body.data).toEqual([]);
  });

  test("cannot be cancelled when it is final", async () => {
    const world = await createWorld(system, ["notification"]);
    const value = { ...world.notification, status: "completed" as const };
    system.peers.notifications.set(value.id, { projectId: world.project.id, value });
    const answer = await system.call(`DELETE /api/v1/notifications/${value.id}`, { token: world.project.token });
    expect(answer.status).toBe(409);
  });
});
