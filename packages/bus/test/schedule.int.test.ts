import { defineHandler, schedule } from "@herald/bus";
import { DueV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { jetstream, RetentionPolicy } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, newProject, readStream, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const due = (id: string): DueV1 => ({ kind: "batch", projectId: newProject(), key: "batch-1", id });
const soon = () => new Date(Date.now() + 2_000);
const later = () => new Date(Date.now() + 3_600_000);
const subject = "push.sched.v1.batch-1.1";

describe("schedule", () => {
  test("publishes the message when it is due, also after a crash of the broker, and the schedule is removed", async () => {
    const fired: unknown[] = [];
    let firedAt = 0;
    const at = soon();
    await schedule(t.bus, { subject, at, contract: DueV1, data: due("a/0/1"), id: "schedule-1" });
    await t.broker.kill();
    await t.broker.restart();
    await t.handle(
      defineHandler({
        durable: "dispatch-due",
        message: DueV1,
        async handle({ data, header }) {
          firedAt = Date.now();
          fired.push({ id: data.id, messageId: header("Nats-Msg-Id") });
        },
      }),
    );
    // The fired message has no Nats-Msg-Id, so no code may dedupe by it.
    await eventually(() => expect(fired).toEqual([{ id: "a/0/1", messageId: undefined }]));
    expect(firedAt).toBeGreaterThanOrEqual(at.getTime());
    await eventually(async () => {
      const left = await readStream(t, "PUSH_SCHEDULE");
      expect(left.filter((message) => message.subject === subject)).toEqual([]);
    });
  });

  test("publishes at once when the time has passed", async () => {
    const fired: string[] = [];
    await t.handle(
      defineHandler({
        durable: "dispatch-due",
        message: DueV1,
        async handle({ data }) {
          fired.push(data.id);
        },
      }),
    );
    await schedule(t.bus, {
      subject,
      at: new Date(0),
      contract: DueV1,
      data: due("past"),
      id: "schedule-past",
    });
    await eventually(() => expect(fired).toEqual(["past"]));
  });

  test("replaces an earlier schedule on the same subject", async () => {
    await schedule(t.bus, { subject, at: soon(), contract: DueV1, data: due("first"), id: "schedule-2" });
    await schedule(t.bus, { subject, at: later(), contract: DueV1, data: due("second"), id: "schedule-3" });
    const waiting = await readStream(t, "PUSH_SCHEDULE");
    expect(waiting.map((message) => message.json<DueV1>().id)).toEqual(["second"]);
  });
});

describe("the broker's rules for schedules", () => {
  test("a target in another stream is refused", async () => {
    const elsewhere = { ...DueV1, subject: () => "push.evt.v1.x.y.z" };
    await expect(
      schedule(t.bus, { subject, at: later(), contract: elsewhere, data: due("x"), id: "schedule-5" }),
    ).rejects.toMatchObject({ code: 10190 });
  });

  test("a stream that discards new messages may have none", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_SCHEDULE");
    await expect(
      t.raw.jsm.streams.add({
        ...config,
        name: "DISCARD_NEW",
        subjects: ["test.discard.new"],
        retention: RetentionPolicy.Limits,
        discard: "new",
      }),
    ).rejects.toMatchObject({ code: 10052 });
  });

  test("a stream without the setting refuses them", async () => {
    const scheduling = headers();
    scheduling.set("Nats-Schedule", `@at ${later().toISOString()}`);
    scheduling.set("Nats-Schedule-Target", "push.evt.v1.x.y.z");
    await expect(jetstream(t.raw.nc).publish("push.evt.v1.a.b.c", "{}", { headers: scheduling })).rejects.toMatchObject(
      {
        code: 10188,
      },
    );
  });
});
