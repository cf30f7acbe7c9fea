import { type DurableName, durables, type MessageContract } from "@herald/contracts";
import type { z } from "zod";

/** One message as a handler sees it: no broker word in it. */
export type Delivery<Data> = {
  readonly data: Data;
  /** The id of the fact: `ce-id`, else the id it was published with, else its place in the stream. */
  readonly id: string;
  readonly subject: string;
  /** 1 for the first time. More says only that an earlier time was not settled. */
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  /** Aborted when the service stops and its deadline has passed. */
  readonly signal: AbortSignal;
  /** A header of the message. */
  header(name: string): string | undefined;
  /**
   * Runs `work`, and runs it again while it throws that something is away (`bus-away`, `queue-full`, …), every 25 ms for a full queue.
   * While it waits the message is held and its place among the concurrent ones is free for others.
   * When too many wait already, or the service stops, it throws what `work` threw: let it pass, and the whole message is held.
   */
  hold<Result>(work: () => Promise<Result>): Promise<Result>;
};

/** A durable and what is done with its messages. Made by {@link defineHandler} and {@link defineBatchHandler}, run by `consume`. */
export type Handler = {
  readonly durable: DurableName;
  /** The subject pattern: names spans and metrics. */
  readonly pattern: string;
  readonly schema: z.ZodType;
  /** How many jobs run at a time. */
  readonly concurrency: number;
  /** How many messages a job takes at most, and how long it waits for them. */
  readonly batch: { readonly size: number; readonly waitMs: number };
  readonly handle: (deliveries: readonly Delivery<unknown>[]) => Promise<void>;
};

/** Enough to cover the waits of a database that answers in milliseconds; a handler that needs more says so. */
const defaultConcurrency = 16;

/**
 * Declares what happens with each message of a durable. Returning is the ack; throwing decides by the error's table entry whether the
 * message is dead-lettered, held or tried again. It must be repeatable: a message can come more than once.
 */
export const defineHandler = <Schema extends z.ZodType>(definition: {
  /** A literal: renaming a durable replays its stream. */
  readonly durable: DurableName;
  readonly message: MessageContract<Schema>;
  readonly concurrency?: number;
  handle(delivery: Delivery<z.output<Schema>>): Promise<void>;
}): Handler => ({
  durable: definition.durable,
  pattern: definition.message.pattern,
  schema: definition.message.schema,
  concurrency: definition.concurrency ?? defaultConcurrency,
  batch: { size: 1, waitMs: 0 },
  async handle([delivery]) {
    if (delivery !== undefined) await definition.handle(delivery as Delivery<z.output<Schema>>);
  },
});

/**
 * Declares what happens with several messages of a durable at once, for a write in bulk. They are settled one by one: when the batch
 * fails for another reason than something being away, each of its messages is handled alone, so that a bad one takes no other with it.
 */
export const defineBatchHandler = <Schema extends z.ZodType>(definition: {
  /** A literal: renaming a durable replays its stream. */
  readonly durable: DurableName;
  readonly message: MessageContract<Schema>;
  /** How many messages at most. */
  readonly size: number;
  /** How long the first message waits for others, in milliseconds. */
  readonly waitMs: number;
  readonly concurrency?: number;
  handle(deliveries: readonly Delivery<z.output<Schema>>[]): Promise<void>;
}): Handler => ({
  durable: definition.durable,
  pattern: definition.message.pattern,
  schema: definition.message.schema,
  concurrency: definition.concurrency ?? 1,
  batch: { size: definition.size, waitMs: definition.waitMs },
  handle: (deliveries) => definition.handle(deliveries as readonly Delivery<z.output<Schema>>[]),
});

/** The stream that a handler's durable reads. */
export const streamOf = ({ durable }: Pick<Handler, "durable">) => durables[durable].stream;
