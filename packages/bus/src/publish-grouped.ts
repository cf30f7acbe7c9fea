import { AsyncLocalStorage } from "node:async_hooks";
import {
  type EventContract,
  type EventName,
  events,
  headerNames,
  type MessageContract,
  type OutboxEvent,
} from "@herald/contracts";
import { createGroupCommit, type GroupCommitOptions } from "@herald/kit";
import { type MsgHdrs, nuid } from "@nats-io/transport-node";
import type { z } from "zod";
import { apiCodes, notConnected } from "./bus-error.ts";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { type EncodedEvent, joinEvents } from "./join-events.ts";
import { brokerHeaders, messageIdOf, outgoingHeaders } from "./message-format.ts";
import { type Encoded, encode, publishEncoded, publishing } from "./publish.ts";
import { requestAck } from "./request.ts";

/** The broker takes at most 1,000 messages in a batch. */
const batchLimit = 1000;

/** While the broker syncs one batch, the next is in transit. Measured: `concurrent` 1 leaves the disk idle, 4 makes smaller batches. */
const commandGroups = { max: 100, concurrent: 2 };
/**
 * The broker creates a store for each batch: 2.3 ms of its CPU, plus 20 µs for each message (measured). No request waits for events, so
 * under load a batch collects the events of 50 ms. On a busy machine, 60 ms took an eighth less CPU of all processes than 20 ms.
 */
const eventGroups = { max: batchLimit, concurrent: 1, intervalMs: 50, groupBytes: 1_048_576 };
/**
 * Below this many messages, each is published alone, because the store of a batch costs more than it saves. Measured CPU of the broker
 * for each: of 20 small ones 150 µs in a batch and alone, of 3 small ones 870 in a batch and 200 alone, of 3 with 17 KB 1,270 and 530.
 */
const minMessagesOfBatch = 16;

type GroupedOptions = {
  /** How many messages may wait. A longer queue would be stored after its senders have given up. Unlimited by default. */
  readonly waiting?: number;
  /** How many bytes may wait or be in flight. Unlimited by default. */
  readonly maxBytes?: number;
};

/**
 * A `publish` for one contract of a stream that allows batches. Messages that arrive while a batch is being written share the next one,
 * at a fraction of the cost. No message waits for others to arrive. Throws as `publish` does, and queue-full when too many wait.
 * `bytes` is the message's size for `maxBytes`.
 */
export const groupedPublish = <Schema extends z.ZodType>(
  bus: () => Bus,
  contract: MessageContract<Schema>,
  options: GroupedOptions = {},
): ((data: z.output<Schema>, id: string, bytes?: number) => Promise<void>) => {
  const send = grouped((messages) => sendBatched(bus(), messages), { ...commandGroups, ...options });
  return async (data, id, bytes) => send(encode(contract, data, messageIdOf(contract, id)), bytes);
};

/** A {@link publishEvent} that shares messages and batches the same way. */
export const groupedPublishEvent = (bus: () => Bus): ((event: OutboxEvent) => Promise<void>) => {
  const send = grouped<EncodedEvent>((events) => sendEvents(bus(), events), eventGroups);
  return async (event) => send(encodeEvent(event));
};

const grouped = <Message extends Encoded & { readonly body: string }>(
  write: (messages: readonly Message[]) => Promise<void>,
  options: GroupCommitOptions<Message>,
) => {
  const commit = createGroupCommit<Message, undefined>(async (messages) => {
    await write(messages);
    return messages.map(() => undefined);
  }, options);
  return (message: Message, bytes = message.body.length): Promise<undefined> =>
    commit({ ...message, runInContext: AsyncLocalStorage.snapshot() }, bytes);
};

/** Publishes a fact as a CloudEvent in NATS binary mode and resolves after the stream's ack. Throws as `publish` does. */
export const publishEvent = <Name extends EventName>(bus: Bus, event: OutboxEvent<Name>): Promise<void> =>
  publishEvents(bus, [event as OutboxEvent]);

/**
 * Publishes facts as {@link publishEvent} does, up to 1,000 together, at a fraction of the cost of single publishes. When it throws, the
 * stream may have stored some of them. It is safe to publish all again: consumers drop repeats.
 */
export const publishEvents = async (bus: Bus, facts: readonly OutboxEvent[]): Promise<void> => {
  for (let from = 0; from < facts.length; from += batchLimit)
    await sendEvents(bus, facts.slice(from, from + batchLimit).map(encodeEvent));
};

const sendEvents = async (bus: Bus, encoded: readonly EncodedEvent[]): Promise<void> => {
  await sendBatched(bus, joinEvents(encoded), minMessagesOfBatch);
  const { telemetry } = connectionOf(bus);
  for (const [pattern, { length }] of Map.groupBy(encoded, (event) => event.pattern))
    telemetry.events.add(length, { pattern });
};

const encodeEvent = (event: OutboxEvent): EncodedEvent => {
  const contract = events[event.event] as unknown as EventContract;
  const headers = {
    [headerNames.ceSpecVersion]: "1.0",
    [headerNames.ceId]: event.id,
    [headerNames.ceSource]: `/projects/${event.data.project_id}`,
    [headerNames.ceType]: contract.ceType,
    [headerNames.ceTime]: event.at.toISOString(),
    [headerNames.ceSubject]: event.subject,
    [headerNames.contentType]: "application/json",
  };
  return { ...encode(contract, event.data, event.id), headers };
};

/**
 * A message of a batch that several requests may share. `runInContext` runs a function in the async context of the message's sender
 * (`AsyncLocalStorage.snapshot()`), so that the message has its own request id and trace; absent: in the context of the batch.
 */
type Grouped = Encoded & { readonly runInContext?: <Result>(fn: () => Result) => Result };

/**
 * Publishes up to 1,000 messages of one stream as one atomic batch: the stream stores all or none. The stream must allow batches.
 * It sends messages one by one when the stream already has an id of the batch (a repeat), or when they are fewer than `atomicFrom`.
 * Throws as `publish` does.
 */
export const sendBatched = async (bus: Bus, messages: readonly Grouped[], atomicFrom = 2): Promise<void> => {
  if (messages.length === 0) return;
  const connection = connectionOf(bus);
  if (messages.length >= atomicFrom) {
    try {
      await publishBatch(connection, messages);
      return;
    } catch (error) {
      if (!isDuplicateInBatch(error)) throw error;
    }
  }
  await Promise.all(
    messages.map(({ runInContext = here, ...message }) => runInContext(() => publishEncoded(connection, message))),
  );
};

const here = <Result>(fn: () => Result): Result => fn();

const isDuplicateInBatch = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === apiCodes.duplicateInBatch;

/** The label of a batch's metrics and span joins the patterns of its messages. */
const publishBatch = async (connection: BusConnection, messages: readonly Grouped[]): Promise<void> => {
  const batch = messages.map(({ subject, body, messageId, headers: own, runInContext = here }) => ({
    subject,
    body,
    headers: (more: Readonly<Record<string, string>>) =>
      runInContext(() => outgoingHeaders({ ...own, [brokerHeaders.messageId]: messageId, ...more })),
  }));
  const patterns = new Set(messages.map(({ pattern }) => pattern));
  await publishing(connection, [...patterns].join(" "), () => requestBatch(connection, batch));
};

/** `headers` builds the message's headers, including the given headers of the batch. */
type BatchMessage = {
  readonly subject: string;
  readonly body: string | Uint8Array;
  readonly headers: (batch: Readonly<Record<string, string>>) => MsgHdrs;
};

/**
 * Sends up to 1,000 messages of one stream as one atomic batch. The broker acks only the last, so a batch costs one round trip.
 * Throws as `requestAck` does.
 */
export const requestBatch = async (
  connection: BusConnection,
  messages: readonly BatchMessage[],
): Promise<{ readonly duplicate?: boolean }> => {
  if (!connection.connected) throw notConnected();
  if (messages.length > batchLimit) throw new RangeError(`a batch holds at most ${batchLimit} messages`);
  const batchId = nuid.next();
  for (const [index, { subject, body, headers }] of messages.entries()) {
    const last = index === messages.length - 1;
    const all = headers({
      [brokerHeaders.batchId]: batchId,
      [brokerHeaders.batchSequence]: String(index + 1),
      ...(last && { [brokerHeaders.batchCommit]: "1" }),
    });
    if (last) return requestAck(connection, subject, body, all);
    connection.nc.publish(subject, body, { headers: all });
  }
  return {};
};
