import { closeBus, defineHandler, hasMessages, isUnsettled, oldestMessageTime, publish } from "@herald/bus";
import { DueV1, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type BusTest, newProject, sendOf, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";
import { durable, onSend, sendsSettled } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());
beforeEach(() => t.reset());

const put = async () => {
  const data = sendOf();
  const { seq: sequence } = await publish(t.bus, SendV1, data, { id: data.notificationId });
  const stored = await t.raw.jsm.streams.getMessage("PUSH_CMD", { seq: sequence });
  if (!stored) throw new Error("it is not stored");
  return { data, place: { sequence, at: stored.time.getTime() }, time: stored.time };
};

describe("a message of a work queue", () => {
  test("is unsettled until it is acked", async () => {
    const { place } = await put();
    expect(await isUnsettled(t.bus, durable, place)).toBe(true);
    const done = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    await t.handle(
      onSend(async () => {
        begun.resolve();
        await done.promise;
      }),
    );
    await begun.promise;
    expect(await isUnsettled(t.bus, durable, place)).toBe(true);
    done.resolve();
    await sendsSettled(t);
    expect(await isUnsettled(t.bus, durable, place)).toBe(false);
  });

  test("is distinguished from the message with its sequence in a recreated stream", async () => {
    const { place } = await put();
    expect(await isUnsettled(t.bus, durable, { ...place, at: place.at - 5_000 })).toBe(false);
    expect(await isUnsettled(t.bus, durable, { ...place, sequence: place.sequence + 1 })).toBe(false);
    expect(await isUnsettled(t.bus, durable, { sequence: 0, at: 0 })).toBe(false);
  });

  test("is found by its subject, the oldest first", async () => {
    const { data, time } = await put();
    const subject = SendV1.subject(data);
    expect(await oldestMessageTime(t.bus, "PUSH_CMD", subject)).toEqual(time);
    expect(await oldestMessageTime(t.bus, "PUSH_CMD", SendV1.subject(sendOf()))).toBeUndefined();
    expect(await hasMessages(t.bus, "PUSH_CMD", subject.replace(/[^.]+$/, "*"))).toBe(true);
    expect(await hasMessages(t.bus, "PUSH_CMD", SendV1.subject({ ...data, projectId: newProject() }))).toBe(false);
  });
});

test("a message of a stream that keeps settled messages is unsettled until its durable has settled it", async () => {
  const projectId = newProject();
  const data = { kind: "batch", projectId, key: "a", id: "a" } as const;
  const { seq: sequence } = await publish(t.bus, DueV1, data, { id: "a" });
  const stored = await t.raw.jsm.streams.getMessage("PUSH_SCHEDULE", { seq: sequence });
  const place = { sequence, at: stored?.time.getTime() ?? 0 };
  expect(await isUnsettled(t.bus, "dispatch-due", place)).toBe(true);
  await t.handle(defineHandler({ durable: "dispatch-due", message: DueV1, handle: async () => {} }));
  await eventually(async () => expect(await isUnsettled(t.bus, "dispatch-due", place)).toBe(false));
  expect(await t.raw.jsm.streams.getMessage("PUSH_SCHEDULE", { seq: sequence })).not.toBeNull();
});

test("dispatch's own user may check messages, and a missing stream is an error", async () => {
  const bus = await connectAs(t, "dispatch");
  try {
    const { data, place } = await put();
    expect(await isUnsettled(bus, durable, place)).toBe(true);
    for (const other of ["dispatch-send-groups", "dispatch-broadcast-ios", "dispatch-due"] as const)
      expect(await isUnsettled(bus, other, place)).toBe(false);
    await t.raw.jsm.streams.delete("PUSH_CMD");
    await expect(isUnsettled(bus, durable, place)).rejects.toMatchObject({ code: "bus-unavailable" });
    await expect(hasMessages(bus, "PUSH_CMD", SendV1.subject(data))).rejects.toMatchObject({ code: "bus-unavailable" });
  } finally {
    await closeBus(bus);
  }
});
