import { defineHandler, type Handler, publish } from "@herald/bus";
import { type MessageContract, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect } from "vitest";
import { type BusTest, messagesIn, sendOf } from "./fixture.ts";

/** The durable that takes sends. */
export const durable = "dispatch-start";

type Handle = Parameters<typeof defineHandler<typeof SendV1.schema>>[0]["handle"];

export const onSend = (handle: Handle, message: MessageContract<typeof SendV1.schema> = SendV1): Handler =>
  defineHandler({ durable, message, handle });

/** Publishes a send, and gives what it says. */
export const publishSend = async (t: BusTest) => {
  const data = sendOf();
  await publish(t.bus, SendV1, data, { id: data.notificationId });
  return data;
};

/** Waits until no send is left, with anybody or in the stream. */
export const sendsSettled = (t: BusTest) =>
  eventually(async () => {
    const info = await t.raw.jsm.consumers.info("PUSH_CMD", durable);
    expect({ pending: info.num_pending, unacked: info.num_ack_pending }).toEqual({ pending: 0, unacked: 0 });
    expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
  });

/** What was logged of the first message that was settled. */
export const settledLine = (t: BusTest) => t.logged.find(({ msg }) => msg === "message settled");
