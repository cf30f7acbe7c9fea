import { once } from "node:events";
import { connect } from "node:net";
import { publishEvent, publishEvents } from "@herald/bus";
import { newDeviceId, newNotificationId, newTopicId, type OutboxEvent, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createEventPositions } from "../src/streams/event-positions.ts";
import { type EventReader, readEventStream } from "./event-reader.ts";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { openKeys } from "./new-world.ts";

/** Short enough for a test to wait. */
const heartbeatMs = 300;
const drainTimeoutMs = 1_000;
const perProject = 3;

let system: GatewayTest;
let project: TestProject;
const readers: EventReader[] = [];
beforeAll(async () => {
  const environment = { HERALD_GATEWAY_LIMIT_STREAMS: "5" };
  system = await startGatewayTest({ environment, limits: { projectStreams: perProject }, heartbeatMs, drainTimeoutMs });
  project = await system.project();
});
afterEach(async () => {
  await system.proxy.heal();
  for (const reader of readers.splice(0)) await reader.leave();
});
afterAll(() => system.stop());

const follow = async (query = "", lastEventId?: string, { token }: Pick<TestProject, "token"> = project) => {
  const headers: Record<string, string> = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
  // The slot of a disconnected reader becomes free a moment later.
  const reader = await eventually(() => readEventStream(system.address(), token, query, headers));
  readers.push(reader);
  return reader;
};
/** A stream whose client reads only its head. */
const followWithoutReading = () =>
  eventually(async () => {
    const { hostname, port } = new URL(system.address());
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write(`GET /api/v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${project.token}\r\n\r\n`);
    const [head] = await once(socket, "data");
    socket.pause();
    if (String(head).startsWith("HTTP/1.1 200 ")) return socket;
    socket.destroy();
    throw new Error(`the stream was refused: ${String(head).split("\r\n")[0]}`);
  });
/** The positions as every gateway with the same keys makes and reads them. */
const positions = () => createEventPositions(openKeys)(project.id as ProjectId);
const positionOf = (sequence: number) => positions().seal({ sequence });
const sequenceOf = (reader: EventReader) => positions().open(reader.lastEventId())?.sequence ?? Number.NaN;
let made = 0;
const topicCreated = async (id = `topic-${made++}`, { id: projectId }: Pick<TestProject, "id"> = project) => {
  const at = new Date();
  const data = { project_id: projectId, topic_id: newTopicId(at), topic: id, at: at.toISOString() };
  await publishEvent(system.bus, { id, event: "TopicCreatedV1", subject: data.topic_id, at, data });
  return id;
};
const cancelledTogether = async (count: number) => {
  const at = new Date();
  const counts = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };
  const all = Array.from({ length: count }, (): OutboxEvent => {
    const notificationId = newNotificationId(at);
    const data = { project_id: project.id as ProjectId, notification_id: notificationId, at: at.toISOString(), counts };
    return { id: `cancelled-${made++}`, event: "NotificationCancelledV1", subject: notificationId, at, data };
  });
  await publishEvents(system.bus, all);
  return all.map(({ id }) => id);
};
const cancelled = async () => (await cancelledTogether(1))[0];
/** Times have a precision of milliseconds, and several events may share one. */
const laterThanAll = async (): Promise<string> => {
  const time = new Date(Date.now() + 1);
  await eventually(() => expect(new Date() > time).toBe(true));
  return time.toISOString();
};
const refusedWith = (route: string, headers: Record<string, string> = {}) =>
  system.call(`GET /api/v1/events${route}`, { token: project.token, headers });

test("a project's events are sent as they happen, and no other's", async () => {
  const other = await system.project("Other");
  const reader = await follow();
  expect(reader.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(reader.response.headers.get("cache-control")).toBe("no-store");
  const first = await topicCreated();
  await topicCreated(undefined, other);
  const second = await cancelled();
  expect(await reader.ids(2)).toEqual([first, second]);
  expect(reader.seen[0]?.event).toEqual({
    id: first,
    type: "io.herald.topic.created.v1",
    timestamp: expect.stringMatching(/Z$/),
    data: expect.objectContaining({ project_id: project.id, topic: first }),
  });
  expect(reader.seen[1]?.event.type).toBe("io.herald.notification.cancelled.v1");
});

test("only the requested types are sent", async () => {
  const one = await follow("?types=io.herald.notification.cancelled.v1");
  const two = await follow("?types=io.herald.notification.cancelled.v1,io.herald.topic.deleted.v1");
  await topicCreated();
  const wanted = await cancelled();
  expect(await one.ids(1)).toEqual([wanted]);
  expect(await two.ids(1)).toEqual([wanted]);
});

test("a client resumes where it stopped, and misses none", async () => {
  const reader = await follow();
  const published = [await topicCreated(), await topicCreated()];
  await reader.ids(2);
  await reader.leave();
  for (let each = 0; each < 250; each++) published.push(await topicCreated());
  const later = await follow("", reader.lastEventId());
  expect(await later.ids(250)).toEqual(published.slice(2));
  // From the first event that it received: each later one again, in the same order.
  const again = await follow("", reader.seen[0]?.id);
  expect(await again.ids(251)).toEqual(published.slice(1));
});

test("a client resumes inside a message of several events, and gets the rest, each once", async () => {
  const reader = await follow();
  const published = [...(await cancelledTogether(250)), await topicCreated(), ...(await cancelledTogether(2))];
  expect(await reader.ids(published.length)).toEqual(published);
  await reader.leave();
  // The first and the last event of a message, and some in the middle.
  for (const at of [0, 1, 98, 99, 100, 199, 248, 249, 250, 251, 252]) {
    const later = await follow("", reader.seen[at]?.id);
    const next = await topicCreated();
    published.push(next);
    expect(await later.ids(published.length - at - 1)).toEqual(published.slice(at + 1));
    await later.leave();
  }
  const only = await follow("?types=io.herald.notification.cancelled.v1", reader.seen[120]?.id);
  const wanted = published.slice(121).filter((id) => !id.startsWith("topic"));
  expect(await only.ids(wanted.length)).toEqual(wanted);
});

test("a reader may start at a time", async () => {
  await topicCreated();
  const since = await laterThanAll();
  const wanted = [await topicCreated(), await topicCreated()];
  const reader = await follow(`?since=${since}`);
  expect(await reader.ids(2)).toEqual(wanted);
  const none = await follow(`?since=${await laterThanAll()}`);
  const next = await topicCreated();
  expect(await none.ids(1)).toEqual([next]);
});

test("a position that cannot be resumed is refused with the reason", async () => {
  const words = async (route: string, headers: Record<string, string> = {}) => {
    const { status, problem } = await refusedWith(route, headers);
    return [status, problem.errors[0]];
  };
  const foreign = (await follow("", undefined, await system.project("Other"))).lastEventId();
  for (const id of ["event-7", "7", foreign])
    expect(await words("", { "last-event-id": id })).toEqual([
      422,
      "Last-Event-ID: must be the `id` of the last event that you received from this project's stream",
    ]);
  expect(await words("", { "last-event-id": positionOf(999_999_999) })).toEqual([
    410,
    expect.stringContaining("Last-Event-ID: this position does not exist"),
  ]);
  expect(await words("?since=2020-01-01T00:00:00Z")).toEqual([422, expect.stringContaining("at most 30 days ago")]);
  expect(await words("?since=2999-01-01T00:00:00Z")).toEqual([422, "since: must not be in the future"]);
  expect(await words("?types=notification.clicked")).toEqual([422, expect.stringContaining("types: must be types")]);
});

test("heartbeats move the position past events of other projects", async () => {
  const other = await system.project("Other");
  const reader = await follow();
  const begin = sequenceOf(reader);
  for (let each = 0; each < 3; each++) await topicCreated(undefined, other);
  await eventually(() => {
    expect(reader.comments.filter((comment) => comment === "heartbeat").length).toBeGreaterThan(1);
    expect(sequenceOf(reader)).toBe(begin + 3);
  });
  expect(reader.seen).toEqual([]);
});

test("streams are limited for each project and for all together", async () => {
  for (let each = 0; each < perProject; each++) await follow();
  const refused = await refusedWith("");
  expect([refused.status, refused.problem.errors[0]]).toEqual([
    429,
    `streams: a project may have at most ${perProject} open here`,
  ]);
  const [other, another, third] = [
    await system.project("Other"),
    await system.project("Another"),
    await system.project("Third"),
  ];
  await follow("", undefined, other);
  // The last place is for a project that has none.
  const second = await system.call("GET /api/v1/events", { token: other.token });
  expect([second.status, second.problem.errors[0]]).toEqual([429, expect.stringContaining("projects that have none")]);
  await follow("", undefined, another);
  const full = await system.call("GET /api/v1/events", { token: third.token });
  expect([full.status, full.problem.errors[0]]).toEqual([429, expect.stringContaining("open, its limit")]);
  // A disconnected client frees its slot.
  await readers.pop()?.leave();
  await follow("", undefined, third);
});

test("a HEAD answers what a reader would get, and takes no place", async () => {
  const headers = { authorization: `Bearer ${project.token}` };
  const head = (query: string) => fetch(`${system.address()}/api/v1/events${query}`, { method: "HEAD", headers });
  for (let each = 0; each < 2 * perProject; each++) {
    const answer = await head("");
    expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
      "",
    ]);
  }
  expect((await head("?type=x")).status).toBe(422);
  for (let each = 0; each < perProject; each++) await follow();
});

test("a client that stops reading is disconnected, and nothing is buffered for it", { timeout: 60_000 }, async () => {
  const socket = await followWithoutReading();
  const reader = await follow("?types=io.herald.notification.cancelled.v1");
  await follow("?types=io.herald.notification.cancelled.v1");
  // 27 MB: more than twice the capacity of both sockets' buffers.
  const at = new Date();
  const failures = Array.from({ length: 2_000 }, () => ({
    device_id: newDeviceId(at),
    status: "failed" as const,
    reason: "unregistered".padEnd(60, "-"),
  }));
  const notificationId = newNotificationId(at);
  const facts = {
    project_id: project.id as ProjectId,
    notification_id: notificationId,
    platform: "ios" as const,
    at: at.toISOString(),
  };
  for (let each = 0; each < 100; each++) {
    const data = { ...facts, batch_id: `${notificationId}/0/${each}`, failures, unregistered: [] };
    await publishEvent(system.bus, { id: data.batch_id, event: "DeliveryFailedV1", subject: "x", at, data });
  }
  // Only its own slot can become free.
  await eventually(async () => expect((await refusedWith("")).status).toBe(200), { timeoutMs: 20_000 });
  let taken = 0;
  socket.on("data", (chunk) => {
    taken += chunk.length;
  });
  const closed = once(socket, "close");
  socket.resume();
  await closed;
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(20_000_000);
  const wanted = await cancelled();
  expect(await reader.ids(1)).toEqual([wanted]);
});

test("a token that is revoked ends its streams", async () => {
  const token = await system.token(project, ["read"]);
  const reader = await follow("", undefined, { token });
  const { body } = await system.call(`GET /admin/v1/projects/${project.id}/tokens`, { token: adminToken });
  const { id } = body.data.find(({ name }: { name: string }) => name === "read");
  await system.call(`DELETE /admin/v1/projects/${project.id}/tokens/${id}`, { token: adminToken });
  await eventually(() => expect(reader.ended()).toBe(true));
  expect(reader.comments.at(-1)).toContain("authorization: the credential is invalid");
});

test("a stream waits while the bus is unavailable, and continues", async () => {
  const reader = await follow();
  const first = await topicCreated();
  await reader.ids(1);
  await system.proxy.cut();
  const second = await topicCreated();
  await eventually(() =>
    expect(reader.comments.filter((comment) => comment === "heartbeat").length).toBeGreaterThan(0),
  );
  await system.proxy.heal();
  expect(await reader.ids(2)).toEqual([first, second]);
});

test("a gateway that stops ends its streams, so that clients resume at another", async () => {
  const stopping = await startGatewayTest();
  const { token } = await stopping.project();
  const reader = await readEventStream(stopping.address(), token);
  await stopping.stop();
  await reader.done;
  expect(reader.comments.at(-1)).toBe("this gateway is shutting down; reconnect");
});
