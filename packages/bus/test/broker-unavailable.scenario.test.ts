import {
  areConsumersReady,
  type Bus,
  busStatus,
  closeBus,
  connectBus,
  consume,
  defineHandler,
  lastMessage,
  publish,
  publishInBatch,
  sendRequest,
} from "@herald/bus";
import { CountOpens, SendV1 } from "@herald/contracts";
import { eventually, type FaultyProxy, faultyProxy } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import type { Msg } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { toReceived } from "../src/received-message.ts";
import { type BusTest, messagesIn, newProject, sendOf, shortenAckWait, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest({ syncAlways: true });
});
afterEach(async () => {
  await connectedAgain();
  await eventually(() => t.raw.nc.rtt());
  await t.reset();
});
afterAll(() => t.stop());

const durable = "dispatch-start";
const handler = (seen: Map<string, number>) =>
  defineHandler({
    durable,
    message: SendV1,
    async handle({ id }) {
      seen.set(id, (seen.get(id) ?? 0) + 1);
    },
  });
const connectedAgain = () => eventually(() => expect(busStatus(t.bus)).toMatchObject({ connected: true }));
const notConnected = () => eventually(() => expect(busStatus(t.bus)).toEqual({ connected: false }));

/** Publishes all the time and keeps what was acked; what was refused must have been refused as bus-unavailable. */
const startLoad = () => {
  const acked = new Set<string>();
  const refused: unknown[] = [];
  let running = true;
  let longestMs = 0;
  const worker = async () => {
    while (running) {
      const data = sendOf();
      const startedAt = performance.now();
      try {
        await publish(t.bus, SendV1, data, { id: data.notificationId });
        acked.add(data.notificationId);
      } catch (error) {
        refused.push(error);
        longestMs = Math.max(longestMs, performance.now() - startedAt);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const workers = Array.from({ length: 10 }, worker);
  return {
    acked,
    refused,
    longestMs: () => longestMs,
    async stop() {
      running = false;
      await Promise.all(workers);
    },
  };
};

/** Takes the broker unavailable under load and brings it back: all that was acked is handled, without anyone's help. */
const survive = async (unavailable: () => Promise<void>, back: () => Promise<void>) => {
  const seen = new Map<string, number>();
  const consuming = await t.handle(handler(seen));
  const load = startLoad();
  await eventually(() => expect(seen.size).toBeGreaterThan(50));
  await unavailable();
  await notConnected();
  expect(areConsumersReady(consuming)).toBe(false);
  await eventually(() => expect(load.refused.length).toBeGreaterThan(20));
  await back();
  await connectedAgain();
  const before = load.acked.size;
  await eventually(() => expect(load.acked.size).toBeGreaterThan(before + 50));
  await load.stop();
  await eventually(() => expect([...load.acked].filter((id) => !seen.has(id))).toEqual([]), { timeoutMs: 40_000 });
  await eventually(() => expect(areConsumersReady(consuming)).toBe(true));
  for (const error of load.refused) expect(error).toMatchObject({ code: "bus-unavailable" });
  return load;
};

describe("the broker goes away under load", () => {
  test("killed and started again", async () => {
    await survive(
      () => t.broker.kill(),
      () => t.broker.restart(),
    );
  });

  test("restarted in good order, within moments", async () => {
    const seen = new Map<string, number>();
    await t.handle(handler(seen));
    const load = startLoad();
    for (let n = 0; n < 3; n++) {
      const before = load.acked.size;
      await eventually(() => expect(load.acked.size).toBeGreaterThan(before + 50));
      await t.broker.restart();
      await connectedAgain();
    }
    await load.stop();
    await eventually(() => expect([...load.acked].filter((id) => !seen.has(id))).toEqual([]), { timeoutMs: 40_000 });
    for (const error of load.refused) expect(error).toMatchObject({ code: "bus-unavailable" });
  });

  test("frozen and thawed: it is noticed without a closed connection, and no caller waits for ever", async () => {
    const load = await survive(
      () => t.broker.freeze(),
      () => t.broker.thaw(),
    );
    // A bound and no measure: three seconds here, and a loaded machine may take its time.
    expect(load.longestMs()).toBeLessThan(10_000);
  });
});

describe("while the broker is unavailable", () => {
  test("everything is refused at once, and nothing of it is sent later", async () => {
    const data = sendOf();
    const message = { contract: SendV1, data, id: data.notificationId };
    await t.broker.kill();
    await notConnected();
    const unavailable = { code: "bus-unavailable" };
    await expect(publish(t.bus, SendV1, data, { id: data.notificationId })).rejects.toMatchObject(unavailable);
    await expect(publishInBatch(t.bus, [message, { ...message, id: "2" }])).rejects.toMatchObject(unavailable);
    await expect(
      sendRequest(t.bus, CountOpens, { projectId: newProject(), notificationIds: [data.notificationId] }),
    ).rejects.toMatchObject(unavailable);
    await expect(lastMessage(t.bus, "PUSH_CMD", SendV1.subject(data), SendV1)).rejects.toMatchObject(unavailable);
    await t.broker.restart();
    await connectedAgain();
    await eventually(() => t.raw.nc.rtt());
    await eventually(() => publish(t.bus, SendV1, sendOf(), { id: "after" }));
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
  });

  test("connecting waits for it, or says so when asked not to", async () => {
    await t.broker.kill();
    const options = { url: t.broker.url, name: "early", log: t.log };
    await expect(connectBus({ ...options, waitOnFirstConnect: false })).rejects.toMatchObject({
      code: "bus-unavailable",
    });
    const waiting = connectBus(options);
    await eventually(() => expect(t.logged.some(({ msg }) => msg.includes("waiting for it"))).toBe(true));
    await t.broker.restart();
    const bus = await waiting;
    expect(busStatus(bus)).toMatchObject({ connected: true });
    await closeBus(bus);
    expect(busStatus(bus)).toEqual({ connected: false });
    await connectedAgain();
  });

  test("closing does not wait for it", async () => {
    const bus = await connectBus({ url: t.broker.url, name: "closing", log: t.log });
    await t.broker.kill();
    await eventually(() => expect(busStatus(bus)).toEqual({ connected: false }));
    await closeBus(bus);
    await t.broker.restart();
    await connectedAgain();
  });
});

describe("the way to the broker is cut", () => {
  let proxy: FaultyProxy;
  let bus: Bus;
  beforeEach(async () => {
    proxy = await faultyProxy(t.broker.url);
    bus = await connectBus({ url: proxy.url, name: "behind-proxy", log: t.log });
  });
  afterEach(async () => {
    await closeBus(bus);
    await proxy.stop();
  });
  const cutOff = async () => {
    await proxy.cut();
    await eventually(() => expect(busStatus(bus)).toEqual({ connected: false }));
  };

  test("a handler that finishes meanwhile is acked after the return: its message does not come again", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let runs = 0;
    const consuming = await consume(bus, [
      defineHandler({
        durable,
        message: SendV1,
        async handle() {
          runs++;
          await released;
        },
      }),
    ]);
    await publish(t.bus, SendV1, sendOf(), { id: "finishes" });
    await eventually(() => expect(runs).toBe(1));
    await cutOff();
    release();
    await proxy.heal();
    await eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0));
    expect(runs).toBe(1);
    await consuming.stop(1_000);
  });

  test("a message that is redelivered while it is still in work here is not begun a second time", async () => {
    await shortenAckWait(t, "PUSH_CMD", durable, 1_000);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let runs = 0;
    const consuming = await consume(bus, [
      defineHandler({
        durable,
        message: SendV1,
        async handle() {
          runs++;
          await released;
        },
      }),
    ]);
    await publish(t.bus, SendV1, sendOf(), { id: "long" });
    await eventually(() => expect(runs).toBe(1));
    await cutOff();
    // Another replica gets it after the ack wait, and gives it back.
    const replica = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", durable);
    const again = await replica.next({ expires: 5_000 });
    expect(again?.info.deliveryCount).toBe(2);
    again?.nak(10);
    // Signals of progress for the third delivery: it was received here, and took the place of the first.
    let signalled = 0;
    const acks = t.raw.nc.subscribe("$JS.ACK.>", {
      callback: (_, msg) => {
        if (
          msg.string() === "+WPI" &&
          toReceived({ subject: "", data: msg.data, reply: msg.subject } as Msg).deliveryCount === 3
        )
          signalled++;
      },
    });
    await proxy.heal();
    await eventually(() => expect(signalled).toBeGreaterThan(0));
    acks.unsubscribe();
    release();
    await eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0));
    expect(runs).toBe(1);
    await consuming.stop(1_000);
  });

  test("a request that is on its way is refused at once, not after its timeout", async () => {
    await t.broker.freeze();
    const refused = expect(
      publish(bus, SendV1, sendOf(), { id: "on-its-way", timeoutMs: 60_000 }),
    ).rejects.toMatchObject({
      code: "bus-unavailable",
    });
    await proxy.cut();
    await refused;
    await t.broker.thaw();
    await proxy.heal();
  });
});
