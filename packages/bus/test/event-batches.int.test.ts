import {
  defineBatchHandler,
  type EventPosition,
  eventBounds,
  listDeadLetters,
  type MessageDelivery,
  publishEvents,
  readEvents,
  replayDeadLetter,
} from "@herald/bus";
import {
  type MessageContract,
  NotificationCancelledV1,
  newNotificationId,
  type OutboxEvent,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError, withRequestId } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import {
  type BusTest,
  headersOf,
  messagesIn,
  newProject,
  readStream,
  shortenAckWait,
  startBusTest,
} from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const durable = "analytics-events";
const counts = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };

/** Publishes cancellations of a project, which become one message. Resolves to their ids. */
const publishTogether = async (count: number, projectId: ProjectId = newProject()): Promise<string[]> => {
  const at = new Date();
  const events = Array.from({ length: count }, (): OutboxEvent => {
    const notificationId = newNotificationId(at);
    const data = { project_id: projectId, notification_id: notificationId, at: at.toISOString(), counts };
    return { id: `${notificationId}/cancelled`, event: "NotificationCancelledV1", subject: notificationId, at, data };
  });
  await publishEvents(t.bus, events);
  return events.map(({ id }) => id);
};

type Cancelled = MessageDelivery<z.output<typeof NotificationCancelledV1.schema>>;
const onCancelled = (handle: (deliveries: readonly Cancelled[]) => Promise<void>, size = 500, waitMs = 20) =>
  defineBatchHandler({ durable, message: NotificationCancelledV1, size, waitMs, handle });
/** Long enough for a busy broker to deliver a few messages. */
const longMs = 1_000;

/** Everything that the durable has got is acked or dead-lettered. */
const allSettled = () =>
  eventually(async () => {
    const { num_pending, num_ack_pending } = await t.raw.jsm.consumers.info("PUSH_EVENTS", durable);
    expect([num_pending, num_ack_pending]).toEqual([0, 0]);
  });
const letters = async () => (await listDeadLetters(t.bus, { by: "key", after: "", perPage: 100 })).data;
/** Counts how often each id was handled. */
const countIds = () => {
  const times = new Map<string, number>();
  return {
    times,
    add: (deliveries: readonly Cancelled[]) => {
      for (const { id } of deliveries) times.set(id, (times.get(id) ?? 0) + 1);
    },
  };
};

test("a handler gets the events of one message as if each had come alone", async () => {
  const projectId = newProject();
  const ids = await withRequestId("request-7", () => publishTogether(3, projectId));
  const [stored, ...others] = await readStream(t, "PUSH_EVENTS");
  expect(others).toEqual([]);
  expect(headersOf(stored)).toEqual({
    "content-type": ["application/cloudevents-batch+json"],
    "Nats-Msg-Id": [expect.stringMatching(/^events\/[\w-]{43}$/)],
  });
  const seen: object[] = [];
  const collect = async (deliveries: readonly Cancelled[]) => {
    for (const { id, subject, data, deliveryCount, sequence, header } of deliveries) {
      const headers = ["ce-type", "ce-source", "ce-subject", "Herald-Request-Id"].map(header);
      seen.push({ id, subject, deliveryCount, sequence, of: data.notification_id, headers });
    }
  };
  await t.handle(onCancelled(collect));
  await allSettled();
  expect(seen).toEqual(
    ids.map((id) => {
      const of = id.split("/")[0];
      const headers = ["io.herald.notification.cancelled.v1", `/projects/${projectId}`, of, "request-7"];
      const subject = `push.evt.v1.${projectId}.notification.cancelled`;
      return { id, subject, deliveryCount: 1, sequence: stored?.seq, of, headers };
    }),
  );
});

test("a handler's batch has no more events than its size, however many a message has", async () => {
  const ids = await publishTogether(250);
  expect(await messagesIn(t, "PUSH_EVENTS")).toBe(3);
  const sizes: number[] = [];
  const handled = countIds();
  const handle = async (deliveries: readonly Cancelled[]) => {
    sizes.push(deliveries.length);
    handled.add(deliveries);
  };
  await t.handle(onCancelled(handle, 40));
  await allSettled();
  expect(Math.max(...sizes)).toBe(40);
  expect(handled.times).toEqual(new Map(ids.map((id) => [id, 1])));
});

test("messages share a handler's batch as far as their events fit", async () => {
  const ids = [];
  for (const count of [60, 60, 30, 1]) ids.push(...(await publishTogether(count)));
  const batches: string[][] = [];
  const handle = async (deliveries: readonly Cancelled[]) => {
    batches.push(deliveries.map(({ id }) => id));
  };
  await t.handle(onCancelled(handle, 100, longMs));
  await allSettled();
  expect(batches.map(({ length }) => length)).toEqual([60, 91]);
  expect(batches.flat()).toEqual(ids);
});

test("when a batch of several messages fails, each event of each is handled alone", async () => {
  const ids = [...(await publishTogether(3)), ...(await publishTogether(1)), ...(await publishTogether(2))];
  const bad = new Set([ids[1], ids[5]]);
  const sizes: number[] = [];
  const handled = countIds();
  const handle = async (deliveries: readonly Cancelled[]) => {
    sizes.push(deliveries.length);
    if (deliveries.some(({ id }) => bad.has(id))) throw new HeraldError("project-not-found", "never");
    handled.add(deliveries);
  };
  await t.handle(onCancelled(handle, 6, longMs));
  await allSettled();
  expect(sizes).toEqual([6, 1, 1, 1, 1, 1, 1]);
  expect(handled.times).toEqual(new Map(ids.filter((id) => !bad.has(id)).map((id) => [id, 1])));
  const dead = (await letters()).map(({ notification_id, deliveries }) => [notification_id, deliveries]);
  expect(dead.toSorted()).toEqual([...bad].map((id) => [id?.split("/")[0], 1]).toSorted());
});

test("a stopping process returns a message with the events that it has not begun, and another handles each once", async () => {
  const [first, ...waiting] = [await publishTogether(2), await publishTogether(3), await publishTogether(1)];
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const before = countIds();
  const stopped = await t.handle(
    onCancelled(async (deliveries) => {
      before.add(deliveries);
      begun.resolve();
      await release.promise;
    }, 3),
  );
  await begun.promise;
  const stopping = stopped.stop(5_000);
  release.resolve();
  await stopping;
  expect([...before.times.keys()]).toEqual(first);
  const after = countIds();
  await t.handle(onCancelled(async (deliveries) => after.add(deliveries)));
  await eventually(() => expect(after.times).toEqual(new Map(waiting.flat().map((id) => [id, 1]))));
  await allSettled();
});

test("a message that is delivered again while its events are handled is handled once", async () => {
  const ids = await publishTogether(3);
  const handled = countIds();
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await t.handle(
    onCancelled(async (deliveries) => {
      handled.add(deliveries);
      begun.resolve();
      await release.promise;
    }),
  );
  await begun.promise;
  // Shorter than the process knows, so that its signals come too late.
  await shortenAckWait(t, "PUSH_EVENTS", durable, 200);
  await eventually(async () =>
    expect((await t.raw.jsm.consumers.info("PUSH_EVENTS", durable)).num_redelivered).toBe(1),
  );
  release.resolve();
  await allSettled();
  expect(handled.times).toEqual(new Map(ids.map((id) => [id, 1])));
});

test("events published again in other company keep their ids", async () => {
  const projectId = newProject();
  const at = new Date();
  const events = Array.from({ length: 4 }, (): OutboxEvent => {
    const notificationId = newNotificationId(at);
    const data = { project_id: projectId, notification_id: notificationId, at: at.toISOString(), counts };
    return { id: `${notificationId}/cancelled`, event: "NotificationCancelledV1", subject: notificationId, at, data };
  });
  await publishEvents(t.bus, events);
  await publishEvents(t.bus, events);
  expect(await messagesIn(t, "PUSH_EVENTS")).toBe(1);
  await publishEvents(t.bus, events.slice(0, 1));
  await publishEvents(t.bus, events.slice(1));
  const handled = countIds();
  await t.handle(onCancelled(async (deliveries) => handled.add(deliveries)));
  await allSettled();
  expect(handled.times).toEqual(new Map(events.map(({ id }) => [id, 2])));
});

test("an event that can never be handled is a dead letter of its own, which can be replayed", async () => {
  const projectId = newProject();
  const [good = "", bad = "", fine = ""] = await publishTogether(3, projectId);
  let broken = true;
  const handled = countIds();
  await t.handle(
    onCancelled(async (deliveries) => {
      if (broken && deliveries.some(({ id }) => id === bad)) throw new HeraldError("project-not-found", "not yet");
      handled.add(deliveries);
    }),
  );
  await allSettled();
  expect([...handled.times.keys()]).toEqual([good, fine]);
  const [letter, ...others] = await letters();
  expect(others).toEqual([]);
  const subject = `push.evt.v1.${projectId}.notification.cancelled`;
  expect(letter).toMatchObject({
    durable,
    message: "NotificationCancelledV1",
    project_id: projectId,
    notification_id: bad.split("/")[0],
    subject,
    reason: "project-not-found",
    detail: "not yet",
    deliveries: 1,
  });

  broken = false;
  expect((await replayDeadLetter(t.bus, letter?.id ?? "", { attempt: "1" })).understood).toBe(true);
  await eventually(() => expect(handled.times.get(bad)).toBe(1));
  const again = (await readStream(t, "PUSH_EVENTS")).at(-1);
  expect(headersOf(again)).toMatchObject({
    "ce-id": [bad],
    "ce-type": ["io.herald.notification.cancelled.v1"],
    "content-type": ["application/json"],
  });
  expect(again?.json()).toMatchObject({ project_id: projectId, counts });
});

test("an event that fails is retried alone, and the others are not repeated", async () => {
  const [first = "", failing = "", last = ""] = await publishTogether(3);
  let failures = 0;
  const handled = countIds();
  await t.handle(
    onCancelled(async (deliveries) => {
      if (failures < 2 && deliveries.some(({ id }) => id === failing)) {
        // Fails once in the batch and once alone.
        if (deliveries.length === 1) failures++;
        throw new Error("a bug");
      }
      handled.add(deliveries);
    }),
  );
  await eventually(() => expect(handled.times.get(failing)).toBe(1));
  await allSettled();
  expect(Object.fromEntries(handled.times)).toEqual({ [first]: 1, [failing]: 1, [last]: 1 });
  expect(failures).toBe(2);
  expect(await letters()).toEqual([]);
});

test("another process repeats the events of a message that was not settled, under the same ids", async () => {
  const ids = await publishTogether(3);
  const [, failing] = ids;
  const before = countIds();
  const failed = await t.handle(
    onCancelled(async (deliveries) => {
      if (deliveries.some(({ id }) => id === failing)) throw new Error("a bug");
      before.add(deliveries);
    }),
  );
  await eventually(() => expect(before.times.size).toBe(2));
  await failed.stop(2_000);
  const after = countIds();
  await t.handle(onCancelled(async (deliveries) => after.add(deliveries)));
  await eventually(() => expect(after.times).toEqual(new Map(ids.map((id) => [id, 1]))));
  await allSettled();
});

test("a message is not delivered again while one of its events waits", async () => {
  const ackWaitMs = 1_500;
  await shortenAckWait(t, "PUSH_EVENTS", durable, ackWaitMs);
  const ids = await publishTogether(2);
  let unavailable = true;
  const handled = countIds();
  const deliveryCounts = new Set<number>();
  await t.handle(
    onCancelled(async (deliveries) => {
      if (unavailable && deliveries.some(({ id }) => id === ids[1]))
        throw new HeraldError("database-unavailable", "unavailable");
      for (const { deliveryCount } of deliveries) deliveryCounts.add(deliveryCount);
      handled.add(deliveries);
    }, 1),
  );
  await eventually(() => expect(handled.times.size).toBe(1));
  const beganAt = Date.now();
  await eventually(() => expect(Date.now() - beganAt).toBeGreaterThan(1.5 * ackWaitMs));
  unavailable = false;
  await allSettled();
  expect([handled.times, deliveryCounts]).toEqual([new Map(ids.map((id) => [id, 1])), new Set([1])]);
});

test("a malformed event of a message is dead-lettered alone; a body that is no batch, as a whole", async () => {
  const projectId = newProject();
  const id = newNotificationId(new Date());
  const subject = `push.evt.v1.${projectId}.notification.cancelled`;
  const data = { project_id: projectId, notification_id: id, at: new Date().toISOString(), counts };
  const put = (body: string) => {
    const all = headers();
    all.set("content-type", "application/cloudevents-batch+json");
    return jetstream(t.raw.nc).publish(subject, body, { headers: all });
  };
  await put(JSON.stringify([{ id: "stray\r\none", time: 7, data: { no: 1 } }, { id: "good", data }, { id: "empty" }]));
  for (const body of ["[", '[{"data":{}}]', "[1]"]) await put(body);
  await put("[]");
  const handled = countIds();
  await t.handle(onCancelled(async (deliveries) => handled.add(deliveries)));
  await allSettled();
  expect([...handled.times.keys()]).toEqual(["good"]);
  const bodies = (await readStream(t, "PUSH_DLQ")).map((message) => new TextDecoder().decode(message.data));
  expect(bodies.toSorted()).toEqual(["", "[", "[1]", '[{"data":{}}]', '{"no":1}']);
  for (const letter of await letters()) expect(letter).toMatchObject({ reason: "schema", project_id: projectId });
});

test("a reader continues inside a message", async () => {
  const projectId = newProject();
  const start = (await eventBounds(t.bus)).last;
  const ids = [...(await publishTogether(3, projectId)), ...(await publishTogether(1, projectId))];
  const read = async (after: EventPosition) => readEvents(t.bus, projectId, { after });
  const all = await read({ sequence: start });
  expect(all.map(({ event }) => event?.id)).toEqual(ids);
  expect(all.map(({ sequence, part }) => [sequence - start, part])).toEqual([
    [1, 1],
    [1, 2],
    [1, undefined],
    [2, undefined],
  ]);
  expect(all[0]?.event).toMatchObject({ type: "io.herald.notification.cancelled.v1", data: { counts } });
  for (const [index, position] of all.entries()) expect(await read(position)).toEqual(all.slice(index + 1));
  const types = new Set(["io.herald.notification.completed.v1", "io.herald.notification.expired.v1"]);
  expect(await readEvents(t.bus, projectId, { after: { sequence: start }, types })).toEqual([
    { sequence: start + 1 },
    { sequence: start + 2 },
  ]);
});

test("one message of a type that this version does not know is handled the same way", async () => {
  const projectId = newProject();
  const all = headers();
  all.set("content-type", "application/cloudevents-batch+json");
  const events = ["a", "b"].map((id) => ({
    specversion: "1.0",
    id,
    type: "io.herald.x.snoozed.v1",
    later: 1,
    data: {},
  }));
  await jetstream(t.raw.nc).publish(`push.evt.v1.${projectId}.x.snoozed`, JSON.stringify(events), { headers: all });
  const seen: unknown[] = [];
  const message = {
    ...NotificationCancelledV1,
    schema: z.record(z.string(), z.unknown()),
  } as unknown as MessageContract;
  const handle = async (deliveries: readonly MessageDelivery<unknown>[]) => {
    for (const { id, header } of deliveries) seen.push([id, header("ce-later")]);
  };
  await t.handle(defineBatchHandler({ durable, message, size: 10, waitMs: 10, handle }));
  await allSettled();
  expect(seen).toEqual([
    ["a", "1"],
    ["b", "1"],
  ]);
});
