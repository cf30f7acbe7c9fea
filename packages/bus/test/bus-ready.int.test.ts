import { busReady, closeBus, connectBus, ensureStreams, publish } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BusTest, sendOf, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const send = () => {
  const data = sendOf();
  return publish(t.bus, SendV1, data, { id: data.notificationId });
};

test("a connected broker that stores nothing is not ready until it stores again", async () => {
  expect(busReady(t.bus)).toBe(true);
  await t.raw.jsm.streams.delete("PUSH_CMD");
  await expect(send()).rejects.toMatchObject({ code: "bus-unavailable" });
  expect(busReady(t.bus)).toBe("NATS stores nothing: the message bus takes no messages at the moment");
  // A broker that has just deleted a stream may fail on its old files when it recreates the stream.
  await eventually(async () => {
    await ensureStreams(t.bus, { replicas: 1, sizeFactor: 0.01 });
    await send();
  });
  expect(busReady(t.bus)).toBe(true);
});

test("without a connection it is unavailable", async () => {
  expect(busReady(undefined)).toBe("NATS is unavailable");
  const bus = await connectBus({ url: t.broker.url, name: "bus-ready", log: t.log });
  expect(busReady(bus)).toBe(true);
  await closeBus(bus);
  expect(busReady(bus)).toBe("NATS is unavailable");
});
