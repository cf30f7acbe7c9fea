import { hash } from "node:crypto";
import {
  batchedTypes,
  type EventContract,
  type EventName,
  eventBatchType,
  events,
  headerNames,
  type MessageContract,
  type OutboxEvent,
} from "@herald/contracts";
import { createGroupCommit, type GroupCommitOptions } from "@herald/kit";
import type { z } from "zod";
import { batchLimit, publishBatch } from "./atomic-batch.ts";
import { apiCodes } from "./bus-error.ts";
import { type Bus, connectionOf } from "./connect.ts";
import { currentOrigin, messageIdOf, type Origin } from "./message-format.ts";
import { type Encoded, encode, publishEncoded } from "./publish.ts";

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

/** A message costs the broker 20 µs, so more would save little; and all are repeated together when a consumer fails. */
const maxJoined = 100;
/**
 * An eighth of what the broker accepts in a message. A consumer that fetches a hundred messages gets at most 12 MB, and one read of
 * `GET /events` gets two messages.
 */
const maxJoinedBytes = 131_072;

/** An encoded event, and the request that it is of. */
export type EncodedEvent = Encoded & {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly origin: Origin;
};

/** Events of several requests share a message. */
const noOrigin: Origin = {};

/** Events that become one message. Messages are published in the order of `place`. */
type Batch = {
  place: number;
  readonly entries: string[];
  readonly events: EncodedEvent[];
  bytes: number;
  /** An event about an entity of this batch is in a later message, so this one must stay before it. */
  followed: boolean;
};

/**
 * Joins events of one type and project into CloudEvents' JSON batches. An event without others stays as it is. Events about one entity,
 * such as a device, keep their order; repeats of one event are joined.
 */
export const joinEvents = (events: readonly EncodedEvent[]): EncodedEvent[] => {
  const batches: Batch[] = [];
  const open = new Map<string, Batch>();
  const latest = new Map<string, Batch>();
  const ids = new Set<string>();
  let places = 0;

  for (const event of events) {
    if (ids.has(event.messageId)) continue;
    ids.add(event.messageId);
    const isBatched = batchedTypes.has(event.headers[headerNames.ceType] ?? "");
    const entry = isBatched ? entryOf(event) : "";
    const bytes = Buffer.byteLength(entry) + 1;
    const entity = event.headers[headerNames.ceSubject] ?? "";
    const earlier = latest.get(entity);
    let batch = isBatched ? open.get(event.subject) : undefined;
    if (batch && (batch.entries.length === maxJoined || batch.bytes + bytes > maxJoinedBytes)) batch = undefined;
    if (batch && earlier && earlier.place > batch.place) {
      if (batch.followed) batch = undefined;
      else batch.place = places++;
    }
    if (batch === undefined) {
      batch = { place: places++, entries: [], events: [], bytes: 1, followed: false };
      batches.push(batch);
      if (isBatched) open.set(event.subject, batch);
    }
    batch.entries.push(entry);
    batch.events.push(event);
    batch.bytes += bytes;
    if (earlier && earlier !== batch) earlier.followed = true;
    latest.set(entity, batch);
  }
  return batches.toSorted((one, other) => one.place - other.place).map(messageOf);
};

/** The event in structured mode: attributes and data in one object. */
const entryOf = ({ headers, body, origin: { requestId, traceparent } }: EncodedEvent): string => {
  const attributes = {
    specversion: headers[headerNames.ceSpecVersion],
    id: headers[headerNames.ceId],
    source: headers[headerNames.ceSource],
    type: headers[headerNames.ceType],
    time: headers[headerNames.ceTime],
    subject: headers[headerNames.ceSubject],
    requestid: requestId,
    traceparent,
  };
  return `${JSON.stringify(attributes).slice(0, -1)},"data":${body}}`;
};

const messageOf = ({ entries, events }: Batch): EncodedEvent => {
  const [first] = events;
  if (first === undefined) throw new RangeError("a batch has at least one event");
  if (events.length === 1) return first;
  // A repeat of the same events has the same id. In other company an event is stored again, and consumers drop it by its own id.
  const messageId = `events/${hash("sha256", events.map((event) => event.messageId).join("\n"), "base64url")}`;
  return {
    pattern: first.pattern,
    subject: first.subject,
    body: `[${entries.join(",")}]`,
    messageId,
    headers: { [headerNames.contentType]: eventBatchType },
    origin: noOrigin,
  };
};
