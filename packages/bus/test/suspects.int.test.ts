import { closeBus, consume } from "@herald/bus";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BusTest, headersOf, messagesIn, readStream, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";
import { onSend, publishSend, sendsSettled } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

test("a message that fails leaves a note from its third delivery on, while it is handled", async () => {
  const bus = await connectAs(t, "dispatch");
  const notes: number[] = [];
  const consuming = consume(bus, [
    onSend(async ({ deliveryCount }) => {
      notes.push(await messagesIn(t, "KV_push_status"));
      if (deliveryCount < 4) throw new Error("try again");
    }),
  ]);
  await publishSend(t);
  await sendsSettled(t);
  // The removal of a note is a message, too.
  expect(notes).toEqual([0, 0, 1, 1]);
  const [last] = (await readStream(t, "KV_push_status")).slice(-1);
  expect(headersOf(last)).toMatchObject({ "KV-Operation": ["DEL"] });
  expect(t.logged.filter(({ msg }) => msg.includes("note"))).toEqual([]);
  await consuming.stop(2_000);
  await closeBus(bus);
});
