import { defineHandler, lastMessage, publish, publishEvent, publishEvents } from "@herald/bus";
import {
  type DeliverBatchV1 as DeliverBatch,
  DeliverBatchV1,
  ExpandedV1,
  newDeviceId,
  newNotificationId,
  SendV1,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, headersOf, messagesIn, newProject, readStream, sendOf, startBusTest } from "./fixture.ts";
import { publishInBatch } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const batchOf = (n: number, projectId = newProject()): DeliverBatch => ({
  batchId: `batch/0/${n}`,
  projectId,
  notificationId: newNotificationId(new Date()),
  lane: "broadcast",
  platform: "ios",
  devices: [],
});

describe("publish", () => {
  test("resolves after the ack, with the message on its subject and its id", async () => {
    const data = sendOf();
    const { seq, duplicate } = await publish(t.bus, SendV1, data, { id: data.notificationId });
    const [stored] = await readStream(t, "PUSH_CMD");
    expect(duplicate).toBeUndefined();
    expect(stored).toMatchObject({ seq, subject: SendV1.subject(data) });
    expect(stored?.json()).toEqual(data);
    expect(stored?.header.get("Nats-Msg-Id")).toBe(`SendV1/${data.notificationId}`);
  });

  test("stores an id once", async () => {
    const data = sendOf();
    const first = await publish(t.bus, SendV1, data, { id: "same" });
    const second = await publish(t.bus, SendV1, data, { id: "same" });
    expect(second).toMatchObject({ seq: first.seq, duplicate: true });
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
  });

  test("stores the same id of another contract", async () => {
    const data = sendOf();
    await publish(t.bus, SendV1, data, { id: data.notificationId });
    const { projectId, notificationId } = data;
    const expanded = { projectId, notificationId, n: 0, batches: 0, devices: 0, unmatched: [] };
    expect(await publish(t.bus, ExpandedV1, expanded, { id: notificationId })).not.toHaveProperty("duplicate");
  });

  test("refuses data that does not match the contract before it sends anything", async () => {
    const data = { ...sendOf(), expiresAt: "tomorrow" };
    await expect(publish(t.bus, SendV1, data, { id: "x" })).rejects.toMatchObject({ name: "ZodError" });
    expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
  });

  test("a field that is more than one token of a subject never reaches the broker", async () => {
    const data = { ...batchOf(1), projectId: "prj_a.b" as never };
    await expect(publish(t.bus, DeliverBatchV1, data, { id: "x" })).rejects.toThrow();
    expect(await messagesIn(t, "PUSH_DELIVER")).toBe(0);
  });

  test("stores all of many concurrent messages", async () => {
    const all = Array.from({ length: 300 }, () => sendOf());
    await Promise.all(all.map((data) => publish(t.bus, SendV1, data, { id: data.notificationId })));
    expect(await messagesIn(t, "PUSH_CMD")).toBe(300);
  });

  test("without a stream for the subject throws bus-unavailable, where the client says JetStreamNotEnabled", async () => {
    const nowhere = { ...SendV1, subject: () => "push.nowhere.v1.x" };
    await expect(jetstream(t.raw.nc).publish("push.nowhere.v1.x", "{}")).rejects.toMatchObject({
      name: "JetStreamNotEnabled",
    });
    await expect(publish(t.bus, nowhere, sendOf(), { id: "x" })).rejects.toMatchObject({
      code: "bus-unavailable",
      messages: ["the message bus takes no messages at the moment"],
    });
  });

  test("throws queue-full for a full subject only, and stores the same message when there is room", async () => {
    const projectId = newProject();
    for (let n = 0; n < 8; n++) await publish(t.bus, DeliverBatchV1, batchOf(n, projectId), { id: `full-${n}` });
    const ninth = () => publish(t.bus, DeliverBatchV1, batchOf(8, projectId), { id: "full-8" });
    await expect(ninth()).rejects.toMatchObject({ code: "queue-full" });
    await expect(ninth()).rejects.toBeInstanceOf(HeraldError);
    await publish(t.bus, DeliverBatchV1, batchOf(0), { id: "other-0" });

    const handled: string[] = [];
    await t.handle(
      defineHandler({
        durable: "dispatch-broadcast-ios",
        message: DeliverBatchV1,
        async handle({ id }) {
          handled.push(id);
        },
      }),
    );
    await eventually(() => expect(handled).toHaveLength(9));
    await eventually(async () => expect(await ninth()).not.toHaveProperty("duplicate"));
    await eventually(() => expect(handled).toContain("full-8"));
  });

  test("throws queue-full for a full stream", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_CMD");
    await t.raw.jsm.streams.update("PUSH_CMD", { ...config, max_bytes: 4_096 });
    try {
      const fill = async () => {
        for (let n = 0; n < 100; n++) await publish(t.bus, SendV1, sendOf(), { id: `fill-${n}` });
      };
      await expect(fill()).rejects.toMatchObject({ code: "queue-full" });
    } finally {
      await t.raw.jsm.streams.update("PUSH_CMD", config);
    }
  });
});

describe("publishInBatch", () => {
  const expanded = (projectId = newProject()) => ({
    contract: ExpandedV1,
    data: { projectId, notificationId: newNotificationId(new Date()), n: 0, batches: 1, devices: 1, unmatched: [] },
    id: crypto.randomUUID(),
  });

  test("stores every message, of several contracts", async () => {
    const send = sendOf();
    await publishInBatch(t.bus, [
      { contract: SendV1, data: send, id: send.notificationId },
      ...Array.from({ length: 99 }, () => expanded()),
    ]);
    const stored = await readStream(t, "PUSH_CMD");
    expect(stored).toHaveLength(100);
    expect(stored[0]?.header.get("Nats-Msg-Id")).toBe(`SendV1/${send.notificationId}`);
  });

  test("stores all or none: a batch that exceeds the stream's limit stores nothing", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_CMD");
    await t.raw.jsm.streams.update("PUSH_CMD", { ...config, max_msgs: 5 });
    try {
      await expect(
        publishInBatch(
          t.bus,
          Array.from({ length: 10 }, () => expanded()),
        ),
      ).rejects.toMatchObject({ code: "queue-full" });
      expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
      await publishInBatch(
        t.bus,
        Array.from({ length: 5 }, () => expanded()),
      );
      expect(await messagesIn(t, "PUSH_CMD")).toBe(5);
    } finally {
      await t.raw.jsm.streams.update("PUSH_CMD", config);
    }
  });

  test("completes a batch of which some messages are stored already", async () => {
    const [first, second, third] = [expanded(), expanded(), expanded()];
    await publish(t.bus, ExpandedV1, second.data, { id: second.id });
    await publishInBatch(t.bus, [first, second, third]);
    expect(await messagesIn(t, "PUSH_CMD")).toBe(3);
  });
});

describe("publishEvent", () => {
  const opened = () => {
    const projectId = newProject();
    const notificationId = newNotificationId(new Date());
    const deviceId = newDeviceId(new Date());
    const at = new Date("2030-01-31T09:00:00.000Z");
    return {
      id: `open-${notificationId}`,
      event: "NotificationOpenedV1",
      subject: notificationId,
      at,
      data: { project_id: projectId, notification_id: notificationId, device_id: deviceId, at: at.toISOString() },
    } as const;
  };

  test("is a CloudEvent in binary mode", async () => {
    const event = opened();
    await publishEvent(t.bus, event);
    const [stored] = await readStream(t, "PUSH_EVENTS");
    expect(stored?.subject).toBe(`push.evt.v1.${event.data.project_id}.notification.opened`);
    expect(stored?.json()).toEqual(event.data);
    expect(headersOf(stored)).toMatchObject({
      "ce-id": [event.id],
      "ce-source": [`/projects/${event.data.project_id}`],
      "ce-specversion": ["1.0"],
      "ce-subject": [event.subject],
      "ce-time": ["2030-01-31T09:00:00.000Z"],
      "ce-type": ["io.herald.notification.opened.v1"],
      "content-type": ["application/json"],
      "Nats-Msg-Id": [event.id],
    });
  });

  test("is stored once", async () => {
    const event = opened();
    await publishEvent(t.bus, event);
    await publishEvent(t.bus, event);
    expect(await messagesIn(t, "PUSH_EVENTS")).toBe(1);
  });

  test("more events than fit into a batch are stored in order, each once", async () => {
    const facts = Array.from({ length: 1_001 }, opened);
    await publishEvent(t.bus, facts[500] ?? opened());
    const [alone] = await readStream(t, "PUSH_EVENTS");
    await publishEvents(t.bus, facts.slice(501));
    await publishEvents(t.bus, facts);
    const stored = await readStream(t, "PUSH_EVENTS");
    expect(stored.map(({ header }) => header.get("ce-id")).toSorted()).toEqual(facts.map(({ id }) => id).toSorted());
    expect(stored.slice(1, 501).map(({ header }) => header.get("ce-id"))).toEqual(facts.slice(501).map(({ id }) => id));
    const { id, at, subject, data } = facts[501] ?? opened();
    const batched = Object.entries(headersOf(stored[1])).filter(([name]) => !name.startsWith("Nats-Batch-"));
    expect(Object.fromEntries(batched)).toEqual({
      ...headersOf(alone),
      "Nats-Msg-Id": [id],
      "ce-id": [id],
      "ce-source": [`/projects/${data.project_id}`],
      "ce-subject": [subject],
      "ce-time": [at.toISOString()],
    });
  });
});

describe("lastMessage", () => {
  test("finds a message until it is acked, also while it is handled", async () => {
    const data = sendOf();
    const find = () => lastMessage(t.bus, "PUSH_CMD", SendV1.subject(data), SendV1);
    expect(await find()).toBeUndefined();
    await publish(t.bus, SendV1, data, { id: data.notificationId });
    expect(await find()).toEqual({ data, at: expect.any(Date) });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let running = false;
    await t.handle(
      defineHandler({
        durable: "dispatch-start",
        message: SendV1,
        async handle() {
          running = true;
          await released;
        },
      }),
    );
    await eventually(() => expect(running).toBe(true));
    expect(await find()).toMatchObject({ data });
    release();
    await eventually(async () => expect(await find()).toBeUndefined());
  });

  test("throws schema for a message that does not match the contract", async () => {
    const subject = SendV1.subject(sendOf());
    await jetstream(t.raw.nc).publish(subject, "}");
    await expect(lastMessage(t.bus, "PUSH_CMD", subject, SendV1)).rejects.toMatchObject({ code: "schema" });
  });
});
