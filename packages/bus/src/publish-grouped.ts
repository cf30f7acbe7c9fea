import { AsyncLocalStorage } from "node:async_hooks";
import type { MessageContract, OutboxEvent } from "@herald/contracts";
import { createGroupCommit, type GroupCommitOptions } from "@herald/kit";
import type { z } from "zod";
import { batchLimit } from "./atomic-batch.ts";
import type { Bus } from "./connect.ts";
import { messageIdOf } from "./message-headers.ts";
import { messageOf } from "./publish-event.ts";
import { type Encoded, encode, type Outgoing, sendBatched } from "./publish-in-batch.ts";

/** While the broker syncs one batch, the next is in transit. Measured: one leaves the disk idle, four make smaller batches. */
const commands = { max: 100, concurrent: 2 };
/**
 * The broker makes a store for each batch: 2.3 ms of its CPU, and 20 µs for each message in it (measured). No request waits for events,
 * so under load a batch takes those of 50 ms. Compared on a busy machine, 60 ms took an eighth less CPU of all processes than 20 ms.
 */
const events = { max: batchLimit, concurrent: 1, intervalMs: 50, groupBytes: 1_048_576 };
/**
 * Below this many events each goes alone: for a store of their own they must share at least what it costs. Measured, CPU of the
 * broker: 20 small events 150 µs each in a batch and alone, 3 small ones 870 in a batch and 200 alone, 3 of 17 KB 1,270 and 530.
 */
const minEventsOfBatch = 16;

export type GroupedOptions = {
  /** How many messages may wait. More would be stored after their senders gave up. Unlimited by default. */
  readonly waiting?: number;
  /** How many bytes may wait or be in flight. Unlimited by default. */
  readonly maxBytes?: number;
};

const grouped = (bus: () => Bus, options: GroupCommitOptions<Encoded>, atomicFrom?: number) => {
  const write = async (messages: readonly Encoded[]): Promise<undefined[]> => {
    await sendBatched(bus(), messages, atomicFrom);
    return messages.map(() => undefined);
  };
  const commit = createGroupCommit(write, options);
  // Each message keeps the request id and trace of its sender.
  return async (message: Outgoing, bytes?: number): Promise<void> => {
    const encoded = encode(message);
    await commit({ ...encoded, runInContext: AsyncLocalStorage.snapshot() }, bytes ?? encoded.body.length);
  };
};

/**
 * A `publish` for one contract of a stream that allows batches: messages that arrive while a batch is being written share the next one,
 * at a fraction of the cost. No message waits for others to arrive. Throws as `publish` does, and queue-full when too many wait.
 * `bytes` is what the message counts towards `maxBytes`.
 */
export const groupedPublish = <Schema extends z.ZodType>(
  bus: () => Bus,
  contract: MessageContract<Schema>,
  options: GroupedOptions = {},
): ((data: z.output<Schema>, id: string, bytes?: number) => Promise<void>) => {
  const send = grouped(bus, { ...commands, ...options });
  return (data, id, bytes) =>
    send({ contract: contract as unknown as MessageContract, data, messageId: messageIdOf(contract, id) }, bytes);
};

/** A `publishEvent` that shares batches the same way. */
export const groupedPublishEvent = (bus: () => Bus): ((event: OutboxEvent) => Promise<void>) => {
  const send = grouped(bus, events, minEventsOfBatch);
  return (event) => send(messageOf(event));
};
