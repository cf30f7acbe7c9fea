import {
  type Bus,
  busReady,
  closeBus,
  connectBus,
  consume,
  defineHandler,
  lastMessage,
  publish,
  sendRequest,
} from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import { openRequests, SendV1 } from "@herald/contracts";
import { eventually, type FaultyProxy, faultyProxy } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import type { Msg } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectionOf } from "../src/connect.ts";
import { pull } from "../src/pull.ts";
import { toReceived } from "../src/received-message.ts";
import { type BusTest, messagesIn, newProject, sendOf, shortenAckWait, startBusTest } from "./fixture.ts";
import { natsLogin } from "./nats-login.ts";
import { publishInBatch } from "./send-fixture.ts";

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
const connectedAgain = () => eventually(() => expect(busReady(t.bus)).toBe(true));
const notConnected = () => eventually(() => expect(busReady(t.bus)).toBe("NATS is unavailable"));

const publishers = 10;

/** Publishes continuously and records acked messages and refusals. Every refusal must be bus-unavailable. */
const startLoad = () => {
  const acked = new Set<string>();
  const refused: unknown[] = [];
  let running = true;
  /** The publishers that were refused at least once. */
  const refusedPublishers = new Set<number>();
  const worker = async (_: unknown, publisher: number) => {
    while (running) {
      const data = sendOf();
      try {
        await publish(t.bus, SendV1, data, { id: data.notificationId });
        acked.add(data.notificationId);
      } catch (error) {
        refused.push(error);
        refusedPublishers.add(publisher);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const workers = Array.from({ length: publishers }, worker);
  return {
    acked,
    refused,
    refusedPublishers,
    async stop() {
      running = false;
      await Promise.all(workers);
    },
  };
};

/** Makes the broker unavailable under load, then available again. The bus must handle every acked message without intervention. */
const survive = async (unavailable: () => Promise<void>, back: () => Promise<void>) => {
  const seen = new Map<string, number>();
  const consuming = await t.handle(handler(seen));
  const load = startLoad();
  await eventually(() => expect(seen.size).toBeGreaterThan(50));
  await unavailable();
  await notConnected();
  expect(consuming.ready()).toBe(false);
  // Every caller gets an answer while the broker is unavailable.
  await eventually(() => expect(load.refusedPublishers.size).toBe(publishers));
  await back();
  await connectedAgain();
  const before = load.acked.size;
  await eventually(() => expect(load.acked.size).toBeGreaterThan(before + 50));
  await load.stop();
  await eventually(() => expect([...load.acked].filter((id) => !seen.has(id))).toEqual([]), { timeoutMs: 40_000 });
  await eventually(() => expect(consuming.ready()).toBe(true));
  for (const error of load.refused) expect(error).toMatchObject({ code: "bus-unavailable" });
};

describe("while the broker is under load", () => {
  test("no message is lost when it is killed and started again", async () => {
    await survive(
      () => t.broker.kill(),
      () => t.broker.restart(),
    );
  });

  test("no message is lost when it restarts gracefully", async () => {
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

  test("the bus notices a frozen broker without a closed connection, and every caller gets an answer", async () => {
    await survive(
      () => t.broker.freeze(),
      () => t.broker.thaw(),
    );
  });
});

describe("while the broker is unavailable", () => {
  test("refuses everything at once and sends none of it later", async () => {
    const data = sendOf();
    const message = { contract: SendV1, data, id: data.notificationId };
    await t.broker.kill();
    await notConnected();
    const unavailable = { code: "bus-unavailable" };
    await expect(publish(t.bus, SendV1, data, { id: data.notificationId })).rejects.toMatchObject(unavailable);
    await expect(publishInBatch(t.bus, [message, { ...message, id: "2" }])).rejects.toMatchObject(unavailable);
    await expect(
      sendRequest(t.bus, openRequests.count, { projectId: newProject(), notificationIds: [data.notificationId] }),
    ).rejects.toMatchObject(unavailable);
    await expect(lastMessage(t.bus, "PUSH_CMD", SendV1.subject(data), SendV1)).rejects.toMatchObject(unavailable);
    await t.broker.restart();
    await connectedAgain();
    await eventually(() => t.raw.nc.rtt());
    await eventually(() => publish(t.bus, SendV1, sendOf(), { id: "after" }));
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
  });

  test("connecting waits for the broker, or throws when it must not wait", async () => {
    await t.broker.kill();
    const options = { url: t.broker.url, name: "early", log: t.log };
    await expect(connectBus({ ...options, waitOnFirstConnect: false })).rejects.toMatchObject({
      code: "bus-unavailable",
    });
    const waiting = connectBus(options);
    await eventually(() => expect(t.logged.some(({ msg }) => msg.includes("waiting for it"))).toBe(true));
    await t.broker.restart();
    const bus = await waiting;
    expect(busReady(bus)).toBe(true);
    await closeBus(bus);
    expect(busReady(bus)).toBe("NATS is unavailable");
    await connectedAgain();
  });

  test("closing does not wait for the broker", async () => {
    const bus = await connectBus({ url: t.broker.url, name: "closing", log: t.log });
    await t.broker.kill();
    await eventually(() => expect(busReady(bus)).toBe("NATS is unavailable"));
    await closeBus(bus);
    await t.broker.restart();
    await connectedAgain();
  });
});

describe("when the connection is cut", () => {
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
    await eventually(() => expect(busReady(bus)).toBe("NATS is unavailable"));
  };

  test("a message whose handler finishes meanwhile is acked after the reconnect and not redelivered", async () => {
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

  test("a message that is redelivered while its handler runs is not handled twice", async () => {
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
    // Another replica gets the message after the ack wait and returns it.
    const replica = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", durable);
    const again = await replica.next({ expires: 5_000 });
    expect(again?.info.deliveryCount).toBe(2);
    again?.nak(10);
    // Progress signals for the third delivery, which this process received in place of the first.
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

  const connectService = () => {
    const { inboxPrefix } = busUsers.dispatch;
    return connectBus({ url: proxy.url, name: "dispatch", ...natsLogin(t, "dispatch"), inboxPrefix, log: t.log });
  };

  /** The broker forgets where replies to another account go when the connection closes, but not the pull request. */
  test("no message goes to a pull request of the connection before", async () => {
    const service = await connectService();
    const deliveries: number[] = [];
    const consuming = consume(service, [
      defineHandler({
        durable,
        message: SendV1,
        async handle({ deliveryCount }) {
          deliveries.push(deliveryCount);
        },
      }),
    ]);
    const first = { deliveries: Array<number>(10).fill(1) };
    for (let round = 0; round < 10; round++) {
      await eventually(() => expect(consuming.ready()).toBe(true));
      await eventually(async () => expect((await t.raw.jsm.consumers.info("PUSH_CMD", durable)).num_waiting).toBe(1));
      await t.broker.freeze();
      await proxy.cut();
      await eventually(() => expect(consuming.ready()).toBe(false));
      await proxy.heal();
      await t.broker.thaw();
      await eventually(() => expect(consuming.ready()).toBe(true));
      for (const _ of first.deliveries) {
        const data = sendOf();
        await publish(t.bus, SendV1, data, { id: data.notificationId });
      }
      await eventually(() => expect(deliveries).toHaveLength(10), { timeoutMs: 20_000 });
      expect({ deliveries: deliveries.splice(0) }).toEqual(first);
    }
    await consuming.stop(1_000);
    await closeBus(service);
  });

  /** The broker reads the pull request when its connection is gone already, and takes it for one that it can answer. */
  test("a pull request in flight takes messages no longer than until their redelivery", async () => {
    const service = await connectService();
    const room = { messages: 0, bytes: 16 * 1024 * 1024 };
    const deliveries = new Map<number, number>();
    const pulling = pull(connectionOf(service), {
      stream: "PUSH_CMD",
      durable,
      room: () => room,
      receive: (received) => {
        deliveries.set(received.sequence, received.deliveryCount);
        received.ack();
      },
      attached: () => {},
    });
    await eventually(() => expect(pulling.ready()).toBe(true));
    await t.broker.freeze();
    const before = proxy.passed();
    room.messages = 100;
    pulling.ask();
    await eventually(() => expect(proxy.passed()).toBeGreaterThan(before));
    await proxy.cut();
    await eventually(() => expect(pulling.ready()).toBe(false));
    await proxy.heal();
    await t.broker.thaw();
    await eventually(() => expect(pulling.ready()).toBe(true));
    const sends = Array.from({ length: 10 }, sendOf);
    for (const data of sends) await publish(t.bus, SendV1, data, { id: data.notificationId });
    await eventually(() => expect(deliveries.size).toBe(sends.length), { timeoutMs: 60_000 });
    expect(Math.max(...deliveries.values())).toBeLessThanOrEqual(2);
    await pulling.stop();
    await closeBus(service);
  });

  test("a request in flight fails at once, not after its timeout", async () => {
    await t.broker.freeze();
    const { projectId, notificationId } = sendOf();
    const asked = { projectId, notificationIds: [notificationId] };
    const request = sendRequest(bus, openRequests.count, asked, { timeoutMs: 60_000 });
    const refused = expect(request).rejects.toMatchObject({ code: "bus-unavailable" });
    await proxy.cut();
    await refused;
    await t.broker.thaw();
    await proxy.heal();
  });
});
