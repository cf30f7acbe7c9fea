import { closeBus, connectBus, consume, defineHandler, publish } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, leakCheck } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { connectionOf } from "../src/connect.ts";
import { type BusTest, messagesIn, sendOf, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const durable = "dispatch-start";
type Handle = Parameters<typeof defineHandler<typeof SendV1.schema>>[0]["handle"];
const onSend = (handle: Handle, concurrency = 4) => defineHandler({ durable, message: SendV1, handle, concurrency });
const send = () => {
  const data = sendOf();
  return publish(t.bus, SendV1, data, { id: data.notificationId });
};
const info = () => t.raw.jsm.consumers.info("PUSH_CMD", durable);
const allSettled = () => eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0));

test("a bus that is closed before its consumers stop throws nothing", async () => {
  const bus = await connectBus({ url: t.broker.url, name: "closing", log: t.log });
  const consuming = consume(bus, [onSend(async () => {})]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  // An unhandled rejection would fail the run.
  await closeBus(bus);
  expect(consuming.ready()).toBe(false);
  await consuming.stop(1_000);
});

describe("concurrency", () => {
  test("is the handler's setting, with more messages prefetched", async () => {
    let inside = 0;
    let max = 0;
    let count = 0;
    for (let n = 0; n < 300; n++) await send();
    await t.handle(
      onSend(async () => {
        max = Math.max(max, ++inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
        count++;
      }, 7),
    );
    await eventually(() => expect(count).toBe(300));
    expect(max).toBe(7);
    await allSettled();
  });

  test("two replicas share the messages and handle each once", async () => {
    const other = await connectBus({ url: t.broker.url, name: "other", log: t.log });
    const by: Record<string, string[]> = { one: [], two: [] };
    const take = (name: string) =>
      onSend(async ({ id }) => {
        by[name]?.push(id);
        await new Promise((resolve) => setImmediate(resolve));
      });
    await t.handle(take("one"));
    const consuming = await consume(other, [take("two")]);
    await eventually(() => expect(consuming.ready()).toBe(true));
    await Promise.all(Array.from({ length: 500 }, send));
    await allSettled();
    const ids = Object.values(by).flat();
    expect(new Set(ids).size).toBe(500);
    expect(ids).toHaveLength(500);
    expect(by.one?.length).toBeGreaterThan(0);
    expect(by.two?.length).toBeGreaterThan(0);
    await consuming.stop(1_000);
    await closeBus(other);
  });
});

describe("a missing durable", () => {
  const config = async () => (await info()).config;

  test("is awaited and logged once; the consumer is not ready until it exists", async () => {
    const declared = await config();
    await t.raw.jsm.consumers.delete("PUSH_CMD", durable);
    const seen: string[] = [];
    const consuming = await consume(t.bus, [
      onSend(async ({ id }) => {
        seen.push(id);
      }),
    ]);
    const missing = () => t.logged.filter(({ msg }) => msg.includes("does not exist yet"));
    await eventually(() => expect(missing()).toHaveLength(1));
    expect(consuming.ready()).toBe(false);
    await send();
    await t.raw.jsm.consumers.add("PUSH_CMD", declared);
    await eventually(() => expect(seen).toHaveLength(1));
    expect(consuming.ready()).toBe(true);
    expect(missing()).toHaveLength(1);
    await consuming.stop(1_000);
  });

  test("is consumed again after it was recreated", async () => {
    const declared = await config();
    const seen: string[] = [];
    const consuming = await t.handle(
      onSend(async ({ id }) => {
        seen.push(id);
      }),
    );
    await send();
    await eventually(() => expect(seen).toHaveLength(1));
    await allSettled();
    await t.raw.jsm.consumers.delete("PUSH_CMD", durable);
    await eventually(() => expect(consuming.ready()).toBe(false));
    await t.raw.jsm.consumers.add("PUSH_CMD", declared);
    await send();
    await eventually(() => expect(seen).toHaveLength(2));
    expect(consuming.ready()).toBe(true);
  });
});

describe("stop", () => {
  test("finishes running handlers, returns unstarted messages at once and stops pulling", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let begun = 0;
    let finished = 0;
    for (let n = 0; n < 20; n++) await send();
    const consuming = await t.handle(
      onSend(async () => {
        begun++;
        await released;
        finished++;
      }),
    );
    await eventually(() => expect(begun).toBe(4));
    let givenBack = 0;
    const acks = t.raw.nc.subscribe("$JS.ACK.>", {
      callback: (_, msg) => {
        if (msg.string().startsWith("-NAK")) givenBack++;
      },
    });
    await t.raw.nc.flush();
    const stopped = consuming.stop(10_000);
    await eventually(() => expect(givenBack).toBe(4));
    await send();
    // The stream tells its consumers of a message after it has acked it.
    await eventually(async () => expect((await info()).num_pending).toBe(13));
    acks.unsubscribe();
    release();
    await stopped;
    expect({ begun, finished }).toEqual({ begun: 4, finished: 4 });
    const ids: string[] = [];
    await t.handle(
      onSend(async ({ id }) => {
        ids.push(id);
      }),
    );
    await eventually(() => expect(new Set(ids).size).toBe(17));
    await allSettled();
  });
  test("returns blocked messages, and after the deadline aborts and returns running ones", async () => {
    const signals: AbortSignal[] = [];
    let held = 0;
    await send();
    await send();
    const consuming = await consume(t.bus, [
      onSend(async ({ signal, hold }) => {
        if (signals.length === 0) {
          signals.push(signal);
          await new Promise(() => {});
        }
        await hold(async () => {
          held++;
          throw new HeraldError("database-unavailable", "unavailable");
        });
      }),
    ]);
    // By now the pause between its tries is most of a second.
    await eventually(() => expect(held).toBeGreaterThan(5));
    await consuming.stop(100);
    expect(signals[0]?.aborted).toBe(true);
    expect(t.logged.find(({ msg }) => msg.includes("returned messages"))).toMatchObject({ late: 1 });
    const consumer = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", durable);
    for (let n = 0; n < 2; n++) (await consumer.next({ expires: 5_000 }))?.ack();
    await allSettled();
  });

  test("leaves no timer, subscription or listener", async () => {
    const noLeak = leakCheck();
    const bus = await connectBus({ url: t.broker.url, name: "leaks", log: t.log });
    const { nc, listeners, waiting } = connectionOf(bus);
    await nc.rtt();
    const { subscriptions } = (nc as unknown as { protocol: { subscriptions: { size(): number } } }).protocol;
    const left = () => ({
      timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length,
      subscriptions: subscriptions.size(),
      listeners: listeners.size,
      waiting: waiting.size,
    });
    const mux = 1;
    const before = left();
    const consuming = await consume(bus, [onSend(async () => {})]);
    await eventually(() => expect(consuming.ready()).toBe(true));
    await send();
    await allSettled();
    expect(left()).toEqual({ timers: expect.any(Number), subscriptions: mux + 1, listeners: 2, waiting: 0 });
    await consuming.stop(1_000);
    await eventually(() => {
      expect(left()).toMatchObject({ subscriptions: mux, listeners: before.listeners, waiting: 0 });
      expect(left().timers).toBeLessThanOrEqual(before.timers);
    });
    await closeBus(bus);
    await noLeak();
  });
});
