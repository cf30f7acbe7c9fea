import { deliveryGuard, SendV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, messagesIn, readStream, shortenAckWait, startBusTest } from "./fixture.ts";
import { durable, onSend, publishSend, sendsSettled, settledLine } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const send = () => publishSend(t);
const allSettled = () => sendsSettled(t);
const line = () => settledLine(t);

describe("a handler that returns", () => {
  test("receives the message with its metadata, and the bus acks it afterwards", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    await t.handle(
      onSend(async ({ data, id, subject, deliveryCount, publishedAt, header }) => {
        seen.push({
          data,
          id,
          subject,
          deliveryCount,
          age: Date.now() - publishedAt.getTime() < 60_000,
          none: header("none"),
        });
        await released;
      }),
    );
    const data = await send();
    await eventually(() => expect(seen).toHaveLength(1));
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
    release();
    await allSettled();
    expect(seen).toEqual([
      { data, id: data.notificationId, subject: SendV1.subject(data), deliveryCount: 1, age: true, none: undefined },
    ]);
    expect(line()).toMatchObject({
      level: "debug",
      durable,
      outcome: "acked",
      projectId: data.projectId,
      messageId: data.notificationId,
    });
    expect(JSON.stringify(t.logged)).not.toContain("Hello");
  });

  test("receives an unsettled message again", async () => {
    await shortenAckWait(t, "PUSH_CMD", durable, 1_000);
    const consumer = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", durable);
    await send();
    expect(await consumer.next({ expires: 10_000 })).not.toBeNull();
    const counts: number[] = [];
    await t.handle(
      onSend(async ({ deliveryCount }) => {
        counts.push(deliveryCount);
      }),
    );
    await allSettled();
    expect(counts[0]).toBe(2);
  });

  test("may run for several ack waits: the bus signals progress and the message is not redelivered", async () => {
    await shortenAckWait(t, "PUSH_CMD", durable, 1_500);
    let signals = 0;
    const acks = t.raw.nc.subscribe("$JS.ACK.>", {
      callback: (_, msg) => {
        if (msg.string() === "+WPI") signals++;
      },
    });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let runs = 0;
    await t.handle(
      onSend(async () => {
        runs++;
        await released;
      }),
    );
    await send();
    await eventually(() => expect(signals).toBeGreaterThanOrEqual(7)); // three in each ack wait
    release();
    await allSettled();
    acks.unsubscribe();
    expect(runs).toBe(1);
  });
});

describe("a handler that throws", () => {
  test("a permanent error: one dead letter with its code", async () => {
    let runs = 0;
    await t.handle(
      onSend(async () => {
        runs++;
        throw new HeraldError("project-not-found", "project: project not found");
      }),
    );
    await send();
    await allSettled();
    const letters = await readStream(t, "PUSH_DLQ");
    expect(runs).toBe(1);
    expect(letters).toHaveLength(1);
    expect(letters[0]?.header.get("Herald-Dead-Reason")).toBe("project-not-found");
    expect(letters[0]?.header.get("Herald-Dead-Detail")).toBe("project: project not found");
  });

  test("any other error: retried after a delay, and its text reaches no header", async () => {
    const at: number[] = [];
    await t.handle(
      onSend(async () => {
        at.push(Date.now());
        if (at.length < 3) throw new Error("quoting the title Hello");
      }),
    );
    await send();
    await allSettled();
    expect(at).toHaveLength(3);
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(0);
    // Not a measurement of speed: without the delay, the broker would redeliver within the same millisecond.
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(200);
  });

  test("at the last delivery: dead-lettered as exhausted", async () => {
    await send();
    await burnDeliveries(deliveryGuard - 1);
    const counts: number[] = [];
    await t.handle(
      onSend(async ({ deliveryCount }) => {
        counts.push(deliveryCount);
        throw new Error("still");
      }),
    );
    await allSettled();
    const [letter] = await readStream(t, "PUSH_DLQ");
    expect(counts).toEqual([deliveryGuard]);
    expect(letter?.header.get("Herald-Dead-Reason")).toBe("exhausted");
    expect(letter?.header.get("Herald-Dead-Deliveries")).toBe(String(deliveryGuard));
    expect(letter?.header.get("Herald-Dead-Detail")).toBe("Error");
  });

  test("a message past the last delivery, as after crashes, is not handled again", async () => {
    await send();
    await burnDeliveries(deliveryGuard);
    let runs = 0;
    await t.handle(
      onSend(async () => {
        runs++;
      }),
    );
    await allSettled();
    expect(runs).toBe(0);
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
  });

  /** The bus never sends a nak without a delay: the broker redelivers at once, and a hundred deliveries are gone in milliseconds. */
  const burnDeliveries = async (count: number) => {
    const consumer = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", durable);
    for (let n = 1; n <= count; n++) {
      const message = await consumer.next({ expires: 10_000 });
      expect(message?.info.deliveryCount).toBe(n);
      message?.nak();
    }
    await t.raw.nc.flush();
  };
});
