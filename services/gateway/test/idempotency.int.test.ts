import { randomUUID } from "node:crypto";
import { consume, defineHandler, openBucket } from "@herald/bus";
import { IdempotencyRecord, newDeviceId, newNotificationId, SendV1 } from "@herald/contracts";
import { createLogger, HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { createIdempotency } from "../src/idempotency/idempotency.ts";
import { createKeyRecords, digest } from "../src/idempotency/key-records.ts";
import { createKeyShare } from "../src/idempotency/key-share.ts";
import { adminToken, apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import type { World } from "./route-case.ts";
import { table } from "./route-table.ts";

let system: GatewayTest;
let project: TestProject;
let clock: { now: () => Date };
let sent: SendV1[];
let stop: () => Promise<void>;

beforeAll(async () => {
  clock = { now: () => new Date() };
  system = await startGatewayTest({ now: () => clock.now() });
  project = await system.project();
  sent = [];
  const handler = defineHandler({
    durable: "dispatch-start",
    message: SendV1,
    handle: async ({ data }) => void sent.push(data),
  });
  const consuming = await consume(system.bus, [handler]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop();
  await system.stop();
});
afterEach(() => {
  clock.now = () => new Date();
  system.peers.failures.clear();
});

const send = (
  key: string,
  body: unknown = { notification: { title: "Idempotency", targets: ["all"] } },
  token = project.token,
) => system.call("POST /api/v1/notifications", { token, body, headers: { "idempotency-key": key } });

/** Stops the clock, now or `ms` later: a step may take as long as a repeat has to wait. */
const stopClock = (ms = 0) => {
  const at = clock.now().getTime() + ms;
  clock.now = () => new Date(at);
};

const commandsOf = (id: string) => sent.filter(({ notificationId }) => notificationId === id);

describe("a repeated send", () => {
  test("gets the same answer, and is sent once", async () => {
    const key = randomUUID();
    const first = await send(key);
    expect(first.status).toBe(202);
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const again = await send(key);
    expect(again.status).toBe(202);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    const marker = (await send(randomUUID())).body.data.id;
    await eventually(() => expect(commandsOf(marker)).toHaveLength(1));
    await eventually(() => expect(commandsOf(first.body.data.id)).toHaveLength(1));
  });

  test("with another body is refused, and so is a key that is none", async () => {
    const key = randomUUID();
    await send(key);
    const other = await send(key, { notification: { title: "Twice", targets: ["all"] } });
    expect(other.status).toBe(422);
    expect(other.problem.type).toBe("/docs/errors#idempotency-key-reused");
    for (const bad of ["", "a b", "x".repeat(256), "ä"]) expect((await send(bad)).status, bad).toBe(422);
  });

  test("is independent in another project", async () => {
    const key = randomUUID();
    const other = await system.project();
    const [mine, theirs] = await Promise.all([send(key), send(key, undefined, other.token)]);
    expect([mine.status, theirs.status]).toEqual([202, 202]);
    expect(theirs.body.data.id).not.toBe(mine.body.data.id);
  });

  test("at the same time gives one id to all: a repeat that comes too early is told to wait", async () => {
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(key)));
    const accepted = answers.filter(({ status }) => status === 202);
    const waiting = answers.filter(({ status }) => status === 409);
    expect(accepted.length).toBeGreaterThan(0);
    expect(accepted.length + waiting.length).toBe(20);
    for (const { problem, headers } of waiting) {
      expect(problem.type).toBe("/docs/errors#request-in-progress");
      expect(headers.get("retry-after")).toBe("1");
    }
    expect(new Set(accepted.map(({ body }) => body.data.id)).size).toBe(1);
    expect(accepted.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1);
  });

  test("keeps its answer, also where it would be refused by now", async () => {
    const own = await system.project();
    const heavy = {
      notification: { title: "Heavy", body: "ä".repeat(2_000), data: { more: "x".repeat(500) }, targets: ["all"] },
    };
    const key = randomUUID();
    const first = await send(key, heavy, own.token);
    expect(first.status).toBe(202);
    const settings = table.putApnsProvider?.body?.({} as World);
    await system.call(`PUT /admin/v1/projects/${own.id}/providers/apns`, { token: adminToken, body: settings });
    await eventually(async () => expect((await send(randomUUID(), heavy, own.token)).status).toBe(422));
    const again = await send(key, heavy, own.token);
    expect([again.status, again.body]).toEqual([202, first.body]);
  });

  test("is not used up by a refused request", async () => {
    const key = randomUUID();
    expect(
      (await send(key, { notification: { title: "Idempotency", targets: ["all"], send_at: "2999-01-01T00:00:00Z" } }))
        .status,
    ).toBe(422);
    expect((await send(key)).status).toBe(202);
  });
});

test("what is kept of a send is short: a gibibyte has room for the keys of millions", async () => {
  const bucket = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
  const { body } = await send(randomUUID());
  const key = await placeOf(body.data.id);
  const record = (await bucket.get(key))?.value;
  expect(record).not.toHaveProperty("answer");
  // The broker adds 30 bytes to a message, and the bucket's name adds 21 to its key.
  expect(key.length + JSON.stringify(record).length + 51).toBeLessThan(200);
});

/** The key of a request's record in the bucket, by the id that the request returned. */
const placeOf = (id: string): Promise<string> =>
  eventually(async () => {
    const keys: string[] = [];
    const watching = openBucket(system.bus, "push_idempotency", IdempotencyRecord).watch(({ key, value }) => {
      if (value?.id === id) keys.push(key);
    });
    await eventually(() => expect(watching.ready()).toBe(true));
    await watching.stop();
    const [place] = keys;
    if (place === undefined) throw new Error("the record is not there");
    return place;
  });

test("a key with an unreadable record is refused, because its request may have succeeded", async () => {
  const key = randomUUID();
  const first = await send(key);
  const place = await placeOf(first.body.data.id);
  await openBucket(system.bus, "push_idempotency", z.unknown()).put(place, { from: "a stranger" });
  const again = await send(key);
  expect(again.status).toBe(422);
  expect(again.problem).toMatchObject({
    type: "/docs/errors#idempotency-key-reused",
    errors: ["Idempotency-Key: its record cannot be read; use a new key"],
  });
  expect((await send(randomUUID())).status).toBe(202);
  await eventually(() => expect(commandsOf(first.body.data.id)).toHaveLength(1));
});

test("a request whose response has no room is performed again under the same id, at once", async () => {
  const log = createLogger({ service: "test", level: "silent" });
  const now = () => new Date();
  // A bucket with room for keys, but for no response.
  const keys = createKeyShare({ fill: async () => ({ bytes: 0, maxBytes: 5_000 }), now, log });
  const bucket = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
  const idempotency = createIdempotency({ keys, records: createKeyRecords(() => bucket, log), now });
  const ids: string[] = [];
  const ask = (key: string) =>
    idempotency(
      { key, owner: project.id, route: "POST /devices", body: {} },
      {
        newId: newDeviceId,
        perform: async ({ id }) => {
          ids.push(id);
          return { status: 201, body: { data: { id, text: "x".repeat(10_000) } } };
        },
      },
    );
  await ask(randomUUID()); // measures the bucket
  const key = randomUUID();
  const [first, again] = [await ask(key), await ask(key)];
  expect(again.body).toEqual(first.body);
  expect(ids.slice(1)).toEqual([ids[1], ids[1]]);
  expect((await bucket.get(digest(JSON.stringify([project.id, "POST /devices", key]))))?.value).toMatchObject({
    id: ids[1],
    released: true,
  });
});

describe("after a crash between the note and the publish", () => {
  const crash = async (key: string, body: unknown) => {
    stopClock();
    // The gateway records the key and then crashes, so only that record is left.
    const first = await send(key, body);
    const bucket = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
    const found = await placeOf(first.body.data.id);
    const entry = await bucket.get(found);
    if (entry === undefined) throw new Error("the record is not there");
    const id = newNotificationId(new Date());
    await bucket.put(found, { body: entry.value.body, id, at: clock.now().getTime() });
    return id;
  };

  test("the repeat waits ten seconds, then sends under the id that was noted", async () => {
    const key = randomUUID();
    const body = { notification: { title: "Healed", targets: ["all"], ttl: 60 } };
    const id = await crash(key, body);
    expect((await send(key, body)).status).toBe(409);
    expect(commandsOf(id)).toHaveLength(0);
    stopClock(10_001);
    const healed = await send(key, body);
    expect(healed.status).toBe(202);
    expect(healed.body.data.id).toBe(id);
    const command = await eventually(() => {
      const [one] = commandsOf(id);
      if (one === undefined) throw new Error("it was not sent");
      return one;
    });
    // As if the first attempt had succeeded: acceptance and expiry have its time.
    expect(command.acceptedAt).toBe(healed.body.data.created_at);
    expect(Date.parse(command.expiresAt) - Date.parse(command.acceptedAt)).toBe(60_000);
    expect((await send(key, body)).headers.get("idempotent-replayed")).toBe("true");
  });

  test("one of many concurrent repeats performs the request", async () => {
    const key = randomUUID();
    const body = { notification: { title: "Taken over", targets: ["all"] } };
    await crash(key, body);
    stopClock(10_001);
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(key, body)));
    const performed = answers.filter(({ status, headers }) => status === 202 && !headers.has("idempotent-replayed"));
    expect(performed).toHaveLength(1);
    expect(answers.every(({ status }) => status === 202 || status === 409)).toBe(true);
  });
});

describe("a request that failed", () => {
  test("may be repeated at once, and the repeat performs it", async () => {
    const call = () =>
      system.call("POST /api/v1/topics", {
        token: project.token,
        body: { topic: { name: "after-a-failure" } },
        headers: { "idempotency-key": "topic-1" },
      });
    system.peers.failures.set(
      "registry.topics.create",
      new HeraldError("database-unavailable", "the database is unavailable"),
    );
    expect((await call()).status).toBe(503);
    system.peers.failures.clear();
    const made = await call();
    expect(made.status).toBe(201);
    const again = await call();
    expect([again.status, again.body]).toEqual([201, made.body]);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
  });
});

test("repeats without a pause while the broker has no leader are performed once it has one", async () => {
  const log = createLogger({ service: "test", level: "silent" });
  const now = () => new Date();
  const keys = createKeyShare({ fill: async () => ({ bytes: 0, maxBytes: 1_048_576 }), now, log });
  const stored = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
  const unavailable = new HeraldError("bus-unavailable", "no leader");
  let led = false;
  let updates = 0;
  const bucket: typeof stored = {
    ...stored,
    // The old leader stores the first, and is killed before it answers.
    update: async (...args) => {
      if (led) return stored.update(...args);
      if (updates++ === 0) await stored.update(...args);
      throw unavailable;
    },
    writeAll: async (group) => {
      if (!led && group.put?.length) throw unavailable;
      return stored.writeAll(group);
    },
  };
  const idempotency = createIdempotency({ keys, records: createKeyRecords(() => bucket, log), now });
  const asked = { key: randomUUID(), owner: project.id, route: "POST /devices", body: {} };
  const ask = () =>
    idempotency(asked, {
      newId: newDeviceId,
      perform: async ({ id }) => {
        if (!led) throw unavailable;
        return { status: 201, body: { data: { id } } };
      },
    });
  for (let tries = 0; tries < 40; tries++) await expect(ask()).rejects.toMatchObject({ code: "bus-unavailable" });
  led = true;
  expect((await ask()).status).toBe(201);
});

describe("secrets are shown once", () => {
  const twice = async (route: string, token: string, body: unknown) => {
    const headers = { "idempotency-key": randomUUID() };
    const first = await system.call(route, { token, body, headers });
    const again = await system.call(route, { token, body, headers });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.status).toBe(first.status);
    expect(again.body).toEqual({ data: first.body.data });
    return first.body;
  };

  test("a device's credential, a project's first token and a further one", async () => {
    const device = { device: { token: apnsToken(), platform: "ios" } };
    expect((await twice("POST /api/v1/devices", project.token, device)).credential).toMatch(/^hdc_/);
    const created = await twice("POST /admin/v1/projects", adminToken, { project: { name: "Idempotency" } });
    expect(created.token).toMatch(/^hpt_/);
    const token = { token: { name: "CI" } };
    const route = `POST /admin/v1/projects/${created.data.id}/tokens`;
    expect((await twice(route, adminToken, token)).token).toMatch(/^hpt_/);
  });

  test("and never in what is kept for the repeat", async () => {
    const values: unknown[] = [];
    const bucket = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
    const watching = bucket.watch(({ value }) => values.push(value));
    await eventually(() => expect(watching.ready()).toBe(true));
    await watching.stop();
    expect(values.length).toBeGreaterThan(5);
    expect(JSON.stringify(values)).not.toMatch(/hpt_|hdc_/);
  });

  test("a project whose first try broke off comes with a token that works", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const call = () =>
      system.call("POST /admin/v1/projects", { token: adminToken, body: { project: { name: "Broken" } }, headers });
    const asked = () => system.peers.asked.filter(({ question }) => question === "registry.projects.create").length;
    const before = asked();
    system.peers.late.add("registry.projects.create");
    expect((await call()).status).toBe(503);
    expect(asked()).toBe(before + 1);
    const made = await call();
    expect(made.status).toBe(201);
    const list = await system.call("GET /api/v1/devices", { token: made.body.token });
    expect(list.status).toBe(200);
  });
});
