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
import { brokerHeaders, currentOrigin, messageIdOf, type Origin, outgoingHeaders } from "./message-format.ts";
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
  const commit = grouped((messages: readonly Encoded[]) => sendBatched(bus(), messages), {
    ...commandGroups,
    ...options,
  });
  return async (data, id, bytes) => {
    const message = { ...encode(contract, data, messageIdOf(contract, id)), origin: currentOrigin() };
    await commit(message, bytes ?? message.body.length);
  };
};

/** A fact to publish, and the request that it is of; absent: the active one. */
export type PublishedEvent = OutboxEvent & { readonly origin?: Origin | undefined };

/** A {@link publishEvents} that shares messages and batches the same way, with the events of other calls. */
export const groupedPublishEvents = (bus: () => Bus): ((facts: readonly PublishedEvent[]) => Promise<void>) => {
  const commit = grouped<EncodedEvent>((events) => sendEvents(bus(), events), eventGroups);
  return async (facts) => {
    const published = await commit.all(encodeEvents(facts), ({ body }) => body.length);
    for (const one of published) if (one.status === "rejected") throw one.reason;
  };
};

const grouped = <Message extends Encoded>(
  write: (messages: readonly Message[]) => Promise<void>,
  options: GroupCommitOptions<Message>,
) =>
  createGroupCommit<Message, undefined>(async (messages) => {
    await write(messages);
    return messages.map(() => undefined);
  }, options);

/** Publishes a fact as a CloudEvent in NATS binary mode and resolves after the stream's ack. Throws as `publish` does. */
export const publishEvent = <Name extends EventName>(bus: Bus, event: OutboxEvent<Name>): Promise<void> =>
  publishEvents(bus, [event as OutboxEvent]);

/**
 * Publishes facts as {@link publishEvent} does, up to 1,000 together, at a fraction of the cost of single publishes. When it throws, the
 * stream may have stored some of them. It is safe to publish all again: consumers drop repeats.
 */
export const publishEvents = async (bus: Bus, facts: readonly OutboxEvent[]): Promise<void> => {
  for (let from = 0; from < facts.length; from += batchLimit)
    await sendEvents(bus, encodeEvents(facts.slice(from, from + batchLimit)));
};

const sendEvents = async (bus: Bus, encoded: readonly EncodedEvent[]): Promise<void> => {
  await sendBatched(bus, joinEvents(encoded), minMessagesOfBatch);
  const { telemetry } = connectionOf(bus);
  for (const [pattern, { length }] of Map.groupBy(encoded, (event) => event.pattern))
    telemetry.events.add(length, { pattern });
};

const encodeEvents = (facts: readonly PublishedEvent[]): EncodedEvent[] => {
  let active: Origin | undefined;
  return facts.map((fact) => {
    active ??= fact.origin ? undefined : currentOrigin();
    return encodeEvent(fact, fact.origin ?? active ?? {});
  });
};

const encodeEvent = (event: OutboxEvent, origin: Origin): EncodedEvent => {
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
  return { ...encode(contract, event.data, event.id), headers, origin };
};

/**
 * Publishes up to 1,000 messages of one stream as one atomic batch: the stream stores all or none. The stream must allow batches.
 * It sends messages one by one when the stream already has an id of the batch (a repeat), or when they are fewer than `atomicFrom`.
 * Throws as `publish` does.
 */
export const sendBatched = async (bus: Bus, messages: readonly Encoded[], atomicFrom = 2): Promise<void> => {
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
  await Promise.all(messages.map((message) => publishEncoded(connection, message)));
};

const isDuplicateInBatch = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === apiCodes.duplicateInBatch;

/** The label of a batch's metrics and span joins the patterns of its messages. */
const publishBatch = async (connection: BusConnection, messages: readonly Encoded[]): Promise<void> => {
  const batch = messages.map(({ subject, body, messageId, headers: own, origin }) => ({
    subject,
    body,
    headers: (more: Readonly<Record<string, string>>) =>
      outgoingHeaders({ ...own, [brokerHeaders.messageId]: messageId, ...more }, origin),
  }));
  const patterns = new Set(messages.map(({ pattern }) => pattern));
  await publishing(connection, { pattern: [...patterns].join(" "), origin: {} }, () => requestBatch(connection, batch));
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
