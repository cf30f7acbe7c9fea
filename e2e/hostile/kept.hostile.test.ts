import { randomBytes } from "node:crypto";
import { Herald } from "@herald/client";
import { newDeviceId, newNotificationId } from "@herald/contracts";
import { type BrokerHands, eventually, expectStatus, operateBroker, readPublished, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type ServiceName, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { snapshotOf } from "./snapshot.ts";

const day = 86_400_000;
const mebibyte = 1_048_576;
/** The size of the event stream in this test, instead of 8 GiB: retention works with shares of it. */
const limit = scale(32, 16) * mebibyte;

let system: System;
let hands: BrokerHands;
beforeAll(async () => {
  system = await startSystem();
  hands = await operateBroker(system.broker);
});
afterAll(async () => {
  await hands?.close();
  await system?.stop();
});
logOnFailure(() => system);

type Row = { _id: string } & Record<string, unknown>;
const collectionOf = (service: ServiceName, collection: string) => {
  const { client, prefix } = system.registryDatabase;
  return client.db(`${prefix}_${service}`).collection<Row>(collection);
};
/** As an hour after the last pass. Services look once a minute for rules that are due. */
const makeRetentionDue = async (): Promise<void> => {
  for (const service of ["registry", "dispatch", "analytics"] as const)
    await collectionOf(service, "retentionClaims").updateMany(
      { by: { $exists: false } },
      { $set: { dueAt: new Date(0) } },
    );
};

test("content, rows and statistics are removed after their retention, and not before", async ({ task }) => {
  const secret = randomBytes(12).toString("hex");
  const project = await system.project("Kept");
  await project.register();
  // A send to an audience, whose delivery rows are separate documents.
  const { id } = await project.send({ title: secret, targets: ["all"] });
  await project.final(id);

  // Old rows, as after months of use.
  const ago = (days: number) => new Date(Date.now() - days * day);
  const many = scale(5_000, 200);
  const [notification, delivery] = await Promise.all([
    collectionOf("dispatch", "notifications").findOne({ _id: id }),
    eventually(async () => {
      const found = await collectionOf("dispatch", "deliveries").findOne({
        notificationId: id,
        outbox: { $exists: false },
      });
      if (!found) throw new Error("its events are not out yet");
      return found;
    }),
  ]);
  const { outbox: _, ...copied } = notification as Row;
  const old = Array.from({ length: many }, () => newNotificationId(ago(1_000)));
  const end = { ...(copied.end as object), at: ago(999) };
  const of = { projectId: project.id };
  await collectionOf("dispatch", "deliveries").insertMany(
    old.map((notificationId) => ({ ...delivery, _id: `${notificationId}/0/0`, notificationId })),
  );
  await collectionOf("dispatch", "notifications").insertMany(
    old.map((_id) => ({
      ...copied,
      _id,
      acceptedAt: ago(1_000),
      expiresAt: ago(999),
      end,
      keptSince: ago(999),
    })),
  );
  const hour = new Date(Math.floor(ago(999).getTime() / 3_600_000) * 3_600_000);
  await collectionOf("analytics", "rollups").insertMany(
    old.flatMap((one) => [
      {
        _id: `${project.id}/hours/${one}/${hour.toISOString().slice(0, 13)}`,
        ...of,
        scope: `hours/${one}`,
        hour,
        run: 0,
      },
      { _id: `${project.id}/total/${one}/all`, ...of, scope: `total/${one}`, run: 0 },
    ]),
  );
  await collectionOf("analytics", "notificationFacts").insertMany(
    old.map((_id) => ({ _id, ...of, topics: [secret], at: ago(1_000) })),
  );
  // Tombstones without their event, as a crash between the event and the end of a tombstone leaves them.
  await collectionOf("registry", "devices").insertMany(
    Array.from({ length: many }, () => ({
      _id: newDeviceId(ago(10)),
      ...of,
      deletedAt: ago(9),
      token: "",
      version: 2,
    })),
  );

  const before = Date.now();
  const kept = async () => {
    const rows = Object.values(await snapshotOf(system, project.id)).flat();
    return rows.filter((row) => old.some((one) => row.includes(one)) || row.includes('"deletedAt"')).length;
  };
  const begun = await kept();
  expect(begun).toBeGreaterThan(0);
  // To read all that is kept again and again would take a core for the minute until the services look.
  const few = async () => {
    const [one = ""] = old;
    const [notifications, deliveries, facts, tombstones, ...rollups] = await Promise.all([
      collectionOf("dispatch", "notifications").countDocuments({ _id: one }),
      collectionOf("dispatch", "deliveries").countDocuments({ _id: `${one}/0/0` }),
      collectionOf("analytics", "notificationFacts").countDocuments({ _id: one }),
      collectionOf("registry", "devices").countDocuments({ projectId: project.id, deletedAt: { $exists: true } }),
      ...["hours", "total"].map((scope) =>
        collectionOf("analytics", "rollups").countDocuments({ projectId: project.id, scope: `${scope}/${one}` }),
      ),
    ]);
    return [notifications, deliveries, facts, tombstones, ...rollups];
  };
  await eventually(
    async () => {
      // Again, because a service that claimed a rule just then leaves it for an hour.
      await makeRetentionDue();
      expect(await few()).toEqual([0, 0, 0, 0, 0, 0]);
    },
    { timeoutMs: 180_000 },
  );
  await eventually(async () => expect(await kept()).toBe(0), { timeoutMs: 120_000 });
  const gone = await project.call(`GET /notifications/${old[0]}`);
  expect([gone.status, gone.body.type]).toEqual([410, expect.stringContaining("notification-gone")]);
  const left = Object.values(await snapshotOf(system, project.id)).flat();
  expect(left.filter((row) => row.includes(secret)).length).toBeGreaterThan(0);
  expect(await project.notification(id)).toMatchObject({ title: secret, status: "completed" });
  expect(await project.deliveries(id)).toHaveLength(1);
  show(task, {
    "rows of long ago": many * 6,
    "seen at first": begun,
    "still kept": 0,
    "gone within ms": Date.now() - before,
  });
});

test("a device that changes in a loop evicts no other project's events", async ({ task }) => {
  const victim = await system.project("Victim");
  const attacker = await system.project("Attacker");
  const { device } = await victim.register();
  for (let sent = 0; sent < 5; sent++) {
    const { id } = await victim.send({ title: `Number ${sent}`, targets: [device.id] });
    await victim.final(id);
    const [push] = (await system.simulators.pushes()).filter((one) => payloadOf(one).notification_id === id);
    if (!push) throw new Error("the push did not arrive");
    const body = { project_id: victim.id, token: payloadOf(push).token };
    expectStatus(await request(system.gateway, `PUT /api/v1/notifications/${id}/open`, { body }), 204);
  }
  const eventsOf = (id: string) => readPublished(system.broker, `push.evt.v1.${id}.>`);
  // Events of the registration, then accepted, delivered, completed and opened for each notification.
  const own = await eventually(async () => {
    const found = await eventsOf(victim.id);
    for (const type of ["notification.accepted", "delivery.accepted", "notification.completed", "notification.opened"])
      expect(found.filter(({ subject }) => subject.endsWith(`.${type}`)).length, type).toBeGreaterThanOrEqual(5);
    return found;
  });

  // Make one change over the API; then publish as many like registry as a loop would make in hours.
  const { device: looped, credential } = await attacker.register();
  const patch = (number: number) =>
    request(system.gateway, `PATCH /api/v1/devices/${looped.id}`, {
      token: number % 2 ? credential : attacker.token,
      body: { device: { metadata: { number } } },
    });
  const asked = 60;
  await inParallel(
    Array.from({ length: asked }, (_, number) => number),
    4,
    async (number) => {
      expectStatus(await patch(number), 200);
    },
  );
  const event = await eventually(async () => {
    const found = (await eventsOf(attacker.id)).find(({ subject }) => subject.endsWith("device.updated"));
    if (!found) throw new Error("a change made no event");
    return found;
  });
  await hands.limit("PUSH_EVENTS", limit);
  const bytes = JSON.stringify(event.headers).length + event.body.length + event.subject.length;
  const rounds = scale(20, 2);
  const events = Math.ceil((limit * rounds) / bytes);
  const { filled, lost } = await flood(event, events);

  expect(await eventsOf(victim.id)).toEqual(own);
  expect(filled).toBeLessThan(1);
  // Behind the attacker's events, which analytics reads too.
  await eventually(
    async () => {
      const { body } = expectStatus(await victim.call("GET /stats"), 200);
      expect(body.data.totals).toMatchObject({ sent: 5, opened: 5 });
    },
    { timeoutMs: 120_000 },
  );
  // The attacker's newest events are stored: they fill the space that no other project needs.
  const mine = await eventsOf(attacker.id);
  expect(mine.length * bytes).toBeGreaterThan(limit / 4);
  show(task, {
    "bytes a change": bytes,
    events,
    "of the stream's limit": `${rounds} ×`,
    fullest: `${Math.round(filled * 100)} %`,
    "other project's events": own.length,
    "of them lost": lost,
  });

  async function flood(
    { subject, headers, body: data }: Awaited<ReturnType<typeof eventsOf>>[number],
    count: number,
  ): Promise<{ filled: number; lost: number }> {
    const chunk = Math.ceil(limit / 16 / bytes);
    let max = 0;
    const fill = async () => (await hands.state("PUSH_EVENTS")).bytes / limit;
    for (let from = 0; from < count; from += chunk) {
      const some = Array.from({ length: Math.min(chunk, count - from) }, (_, index) => from + index);
      await inParallel(some, 128, (number) =>
        hands.publish(subject, data, { ...headers, "Nats-Msg-Id": `flood-${number}`, "ce-id": `flood-${number}` }),
      );
      max = Math.max(max, await fill());
      // Relative to the stream, this is a hundred times faster than in production, so wait for the next check of its size.
      await eventually(async () => expect(await fill()).toBeLessThan(0.85), { timeoutMs: 10_000 }).catch(() => {});
      if ((await eventsOf(victim.id)).length < own.length) break;
    }
    return { filled: max, lost: own.length - (await eventsOf(victim.id)).length };
  }
});

test("event ids reveal nothing about other projects' traffic", async ({ task }) => {
  const watcher = await system.project("Watcher");
  const busy = await system.project("Busy");
  const since = new Date();
  const made = (of: Project, name: string) => of.call("POST /topics", { body: { topic: { name } } });
  /** The positions of the project's topics, in the order in which they were made. */
  const positionsOf = async (of: Project, count: number): Promise<string[]> => {
    const found: string[] = [];
    const herald = new Herald({ url: system.gateway, token: of.token });
    const types = ["io.herald.topic.created.v1"] as const;
    for await (const { position } of herald.events.follow({ types, since, signal: AbortSignal.timeout(30_000) })) {
      found.push(position);
      if (found.length === count) break;
    }
    return found;
  };
  const others = scale(300, 30);
  await made(watcher, "before");
  for (let each = 0; each < others; each++) await made(busy, `busy-${each}`);
  await made(watcher, "after");

  const [before = "", after = ""] = await positionsOf(watcher, 2);
  const again = await positionsOf(watcher, 2);
  const [foreign = ""] = await positionsOf(busy, 1);
  // What the watcher learns from its own two ids, and from two reads of one event.
  const learned = Number(after) - Number(before) - 1;
  expect.soft(learned).toBeNaN();
  expect.soft(new Set([before, after, ...again]).size).toBe(4);
  expect.soft(new Set([before, after, foreign].map(({ length }) => length)).size).toBe(1);

  const resumed = async (id: string): Promise<number> => {
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${watcher.token}`, "last-event-id": id };
    const response = await fetch(`${system.gateway}/api/v1/events`, { headers, signal: leaving.signal });
    leaving.abort();
    return response.status;
  };
  // A number that is refused differently once it is too high would lead to the stream's end by bisection.
  const numbers = ["0", "1", String(others), "1000000", "999999999999999"];
  const turned = before.startsWith("A") ? "B" : "A";
  const forged = [
    ...numbers,
    foreign,
    turned + before.slice(1),
    before.slice(1),
    `${before}.`,
    randomBytes(34).toString("base64url"),
  ];
  const statuses = await Promise.all(forged.map(resumed));
  expect.soft(statuses).toEqual(forged.map(() => 422));
  expect(await resumed(before)).toBe(200);
  show(task, {
    "events of another project": others,
    "of them counted by the watcher": Number.isNaN(learned) ? 0 : learned,
    "forged and foreign ids": forged.length,
    "of them accepted": statuses.filter((status) => status !== 422).length,
  });
});
