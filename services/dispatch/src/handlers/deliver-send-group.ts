import { defineHandler } from "@herald/bus";
import { SendGroupV1, SendOneV1 } from "@herald/contracts";
import type { DeliverSends } from "../delivery/deliver-sends.ts";
import { claimOf } from "./deliver-batch.ts";

/** Sends to few devices each finish where they start. */
export const deliverSendGroup = (deliverSends: DeliverSends, concurrency: number) =>
  defineHandler({
    durable: "dispatch-send-groups", // renaming a durable replays its stream
    message: SendGroupV1,
    concurrency,
    handle: ({ data, signal, ...message }) => deliverSends(data.sends, { claim: claimOf(message), signal }),
  });

/** A send whose request was repeated. What its group's message brought before is found in the database. */
export const deliverSingleSend = (deliverSends: DeliverSends, concurrency: number) =>
  defineHandler({
    durable: "dispatch-single-sends", // renaming a durable replays its stream
    message: SendOneV1,
    concurrency,
    handle: ({ data, signal, ...message }) => deliverSends([data], { claim: claimOf(message), signal }),
  });
