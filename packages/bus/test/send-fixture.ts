import { type Bus, defineHandler, type Handler, type Origin, publish } from "@herald/bus";
import { type MessageContract, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect } from "vitest";
import type { z } from "zod";
import { messageIdOf } from "../src/message-format.ts";
import { encode } from "../src/publish.ts";
import { sendBatched } from "../src/publish-grouped.ts";
import { type BusTest, messagesIn, sendOf } from "./fixture.ts";

/** The durable that reads sends. */
export const durable = "dispatch-start";

type Handle = Parameters<typeof defineHandler<typeof SendV1.schema>>[0]["handle"];

export const onSend = (handle: Handle, message: MessageContract<typeof SendV1.schema> = SendV1): Handler =>
  defineHandler({ durable, message, handle });

/** Publishes a send and returns its data. */
export const publishSend = async (t: BusTest) => {
  const data = sendOf();
  await publish(t.bus, SendV1, data, { id: data.notificationId });
  return data;
};

/** Waits until no send is pending, unacked or in the stream. */
export const sendsSettled = (t: BusTest) =>
  eventually(async () => {
    const info = await t.raw.jsm.consumers.info("PUSH_CMD", durable);
    expect({ pending: info.num_pending, unacked: info.num_ack_pending }).toEqual({ pending: 0, unacked: 0 });
    expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
  });

/** The log line of the first settled message. */
export const settledLine = (t: BusTest) => t.logged.find(({ msg }) => msg === "message settled");

type Message<Schema extends z.ZodType> = {
  readonly contract: MessageContract<Schema>;
  readonly data: z.output<Schema>;
  readonly id: string;
  readonly origin?: Origin;
};
type Messages<Schemas extends readonly z.ZodType[]> = { readonly [Index in keyof Schemas]: Message<Schemas[Index]> };

/** Publishes messages as grouped publishes do when they share a batch. */
export const publishInBatch = async <const Schemas extends readonly z.ZodType[]>(
  bus: Bus,
  messages: Messages<Schemas>,
): Promise<void> =>
  sendBatched(
    bus,
    (messages as unknown as Message<z.ZodType>[]).map(({ contract, data, id, ...rest }) => ({
      ...encode(contract, data, messageIdOf(contract, id)),
      ...rest,
    })),
  );
