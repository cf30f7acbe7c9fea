import { AckPolicy, type JetStreamClient, jetstream, RetentionPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";

/** Behaviour of the broker that the bus works around. If a test fails after an upgrade, its workaround may be removable. */
let t: BusTest;
let js: JetStreamClient;
beforeAll(async () => {
  t = await startBusTest();
  js = jetstream(t.raw.nc);
  await t.raw.jsm.streams.add({ name: "FACTS", subjects: ["facts.>"], retention: RetentionPolicy.Workqueue });
});
afterAll(() => t.stop());

const durable = async (name: string, more: object) => {
  await t.raw.jsm.consumers.add("FACTS", {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    filter_subject: `facts.${name}`,
    ...more,
  });
  return js.consumers.get("FACTS", name);
};

describe("a consumer's backoff", () => {
  test("replaces its ack wait by its first entry, silently", async () => {
    const consumer = await durable("backoff", {
      ack_wait: nanos(30_000),
      max_deliver: 5,
      backoff: [nanos(500), nanos(5_000)],
    });
    expect((await consumer.info()).config.ack_wait).toBe(nanos(500));
  });

  test("does not apply to a bare nak: the broker redelivers at once", async () => {
    const consumer = await durable("barenak", { max_deliver: 3, backoff: [nanos(60_000), nanos(120_000)] });
    await js.publish("facts.barenak", "{}");
    for (let n = 1; n <= 3; n++) {
      const message = await consumer.next({ expires: 10_000 });
      expect(message?.info.deliveryCount).toBe(n);
      message?.nak();
    }
  });
});

test("the broker refuses overlapping filters of two durables of a work queue", async () => {
  await durable("overlap", {});
  await expect(
    t.raw.jsm.consumers.add("FACTS", {
      durable_name: "overlap-2",
      ack_policy: AckPolicy.Explicit,
      filter_subject: "facts.overlap",
    }),
  ).rejects.toMatchObject({ code: 10100 });
});

test("a stream dedupes ids across all its subjects", async () => {
  await js.publish("facts.one", "{}", { msgID: "same" });
  expect(await js.publish("facts.two", "{}", { msgID: "same" })).toMatchObject({ duplicate: true });
});

test("the client loses or delays a publish without a connection, so the bus refuses it", async () => {
  await t.broker.kill();
  expect(() => t.raw.nc.publish("facts.away", "{}")).not.toThrow();
  await t.broker.restart();
});
