import { type BatchedEvent, type DurableName, durables, headerNames, type MessageContract } from "@herald/contracts";
import { describeIssues } from "@herald/kit";
import type { z } from "zod";
import { brokerHeaders, type MessageHeaders, messageIdOf } from "./message-format.ts";
import { headersOfEvent, type Received } from "./received-message.ts";

/** One message as a handler sees it, free of broker details. */
export type MessageDelivery<Data> = {
  readonly data: Data;
  /** The id of the fact: `ce-id`, else the id of its publish, else stream and sequence. */
  readonly id: string;
  readonly subject: string;
  /** Its size in memory. */
  readonly bytes: number;
  /** 1 for the first delivery. A higher number means that an earlier delivery was not settled. */
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  /** The message's sequence in its stream, equal for every delivery. Orders messages of the same millisecond. */
  readonly sequence: number;
  /** Aborted when the service stops and its deadline has passed. */
  readonly signal: AbortSignal;
  /** A header of the message. */
  header(name: string): string | undefined;
  /**
   * Runs `work` and retries it while a dependency is unavailable (`bus-unavailable`, `queue-full`, …), every 25 ms for a full queue.
   * Meanwhile the message is blocked and its permit is free for others. When too many handlers wait already, or the service stops, it
   * throws the error of `work`. Rethrow that error, and the bus holds the whole message.
   */
  hold<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * For a message of several parts, so that none fails with another: copies a part to the dead letters if `error` says that it can never
   * succeed. Resolves to false, and copies nothing, if it may be retried. Throws as `publish` does.
   */
  deadLetter(part: MessagePart, error: unknown): Promise<boolean>;
};

/** A part of a message. `key`: unique in the message. `subject`: of a message of its own, to which a replay publishes it. */
export type MessagePart = { readonly key: string; readonly subject: string; readonly data: unknown };

/** A message whose body was parsed. */
export type ParsedMessage = {
  /** The latest delivery: a redelivery replaces it while the message is still being handled. */
  received: Received;
  /** What its body says; of a joined message, what each of its events says. */
  readonly data: readonly unknown[];
  /** The events of a joined message that is handled as a whole. */
  readonly events?: readonly BatchedEvent[] | undefined;
};

type Waiting = Pick<MessageDelivery<unknown>, "hold" | "signal">;

/** What the deliveries of a message share. */
type Shared = Pick<MessageDelivery<unknown>, "bytes" | "publishedAt"> & {
  readonly handler: Handler;
  readonly received: Received;
  readonly permit: Waiting;
  readonly deadLetter: MessageDelivery<unknown>["deadLetter"];
};

/** A message, or one event of a joined message. Handlers may copy its fields; the rest is rarely read and costs more. */
export class ReceivedDelivery implements MessageDelivery<unknown> {
  readonly data: unknown;
  readonly subject: string;
  readonly bytes: number;
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  readonly sequence: number;
  readonly signal: AbortSignal;
  readonly #shared: Shared;
  readonly #event: BatchedEvent | undefined;
  #headers: MessageHeaders | undefined;

  constructor(shared: Shared, data: unknown, event: BatchedEvent | undefined) {
    const { received } = shared;
    this.data = data;
    this.subject = received.subject;
    this.bytes = shared.bytes;
    this.deliveryCount = received.deliveryCount;
    this.publishedAt = shared.publishedAt;
    this.sequence = received.sequence;
    this.signal = shared.permit.signal;
    this.#shared = shared;
    this.#event = event;
  }

  get id(): string {
    const { handler, received } = this.#shared;
    return handler.idOf({ headers: this.headers, stream: received.stream, sequence: received.sequence });
  }
  /** Reading one header parses all of them. */
  get headers(): MessageHeaders | undefined {
    this.#headers ??= this.#event === undefined ? this.#shared.received.headers : headersOfEvent(this.#event);
    return this.#headers;
  }
  get header(): MessageDelivery<unknown>["header"] {
    return (name) => this.headers?.get(name) || undefined;
  }
  get hold(): MessageDelivery<unknown>["hold"] {
    return this.#shared.permit.hold;
  }
  get deadLetter(): MessageDelivery<unknown>["deadLetter"] {
    return this.#shared.deadLetter;
  }
}

/** A message as a handler gets it: once, or each of its events. `deadLetter`: for the message. */
export const deliveriesOfMessage = (
  handler: Handler,
  { received, data, events }: ParsedMessage,
  { permit, deadLetter }: Pick<Shared, "permit" | "deadLetter">,
): ReceivedDelivery[] => {
  const bytes = Math.ceil(received.bytes / data.length);
  const shared = { handler, received, permit, deadLetter, bytes, publishedAt: received.publishedAt };
  return data.map((one, index) => new ReceivedDelivery(shared, one, events?.[index]));
};

/** A durable and its handler. Made by {@link defineHandler} and {@link defineBatchHandler}, run by `consume`. */
export type Handler = {
  readonly durable: DurableName;
  /** The subject pattern, used as the name of spans and metrics. */
  readonly pattern: string;
  /** Parses the data of a message, or of each event of a joined message; undefined when it is not JSON. */
  readonly parserOf: (received: Received) => (data: unknown) => Parsed;
  /** The id of the fact. */
  readonly idOf: (fact: Pick<Received, "headers" | "stream" | "sequence">) => string;
  /** How many batches run at a time. */
  readonly concurrency: number;
  /** The largest batch, and how long its first message waits for others. */
  readonly batch: { readonly size: number; readonly waitMs: number };
  handle(deliveries: readonly MessageDelivery<unknown>[]): Promise<void>;
};

export type Parsed =
  | { readonly ok: true; readonly data: unknown }
  /** Not JSON, or does not match the contract. */
  | { readonly ok: false; readonly detail: string };

/** Enough for handlers that wait milliseconds for a database. A handler that needs more sets `concurrency`. */
const defaultConcurrency = 16;

type Single<Data> = {
  /** A literal: renaming a durable replays its stream. */
  readonly durable: DurableName;
  readonly concurrency?: number;
  handle(delivery: MessageDelivery<Data>): Promise<void>;
};

const oneByOne = <Data>({ durable, concurrency = defaultConcurrency, handle }: Single<Data>) => ({
  durable,
  concurrency,
  batch: { size: 1, waitMs: 0 },
  async handle([delivery]: readonly MessageDelivery<unknown>[]) {
    if (delivery !== undefined) await handle(delivery as MessageDelivery<Data>);
  },
});

/**
 * Declares the handler of a durable. When it returns, the bus acks. When it throws, the error's entry in `errors` decides whether the
 * bus dead-letters, holds or retries the message. It must be repeatable: a message can be delivered more than once.
 */
export const defineHandler = <Schema extends z.ZodType>(
  definition: Single<z.output<Schema>> & { readonly message: MessageContract<Schema> },
): Handler => ({ ...ofContract(definition.message), ...oneByOne(definition) });

const ofContract = (message: MessageContract): Pick<Handler, "pattern" | "parserOf" | "idOf"> => ({
  pattern: message.pattern,
  parserOf: () => (data) => parseBody(message, data),
  idOf: (fact) => factId(fact, messageIdOf(message, "")),
});

/**
 * Declares a handler that takes several messages of a durable at once, for bulk writes. The bus settles each message separately. When a
 * batch fails although every dependency is available, it handles the messages one by one, so that a bad message fails no other.
 */
export const defineBatchHandler = <Schema extends z.ZodType>(definition: {
  /** A literal: renaming a durable replays its stream. */
  readonly durable: DurableName;
  readonly message: MessageContract<Schema>;
  /** The largest batch. */
  readonly size: number;
  /** How long the first message waits for others, in milliseconds. */
  readonly waitMs: number;
  readonly concurrency?: number;
  /** A second contract that bodies on some subjects must match. The handler gets all fields, known or not. */
  contractOf?(subject: string): Pick<MessageContract, "schema" | "isPlain"> | undefined;
  handle(deliveries: readonly MessageDelivery<z.output<Schema>>[]): Promise<void>;
}): Handler => ({
  ...ofContract(definition.message),
  durable: definition.durable,
  parserOf: ({ subject }) => {
    const contract = definition.contractOf?.(subject);
    return (body) => {
      const parsed = parseBody(definition.message, body);
      if (!parsed.ok || contract === undefined || contract.isPlain?.(parsed.data)) return parsed;
      const { error } = contract.schema.safeParse(parsed.data);
      return error ? malformed(error) : parsed;
    };
  },
  concurrency: definition.concurrency ?? 1,
  batch: { size: definition.size, waitMs: definition.waitMs },
  handle: (deliveries) => definition.handle(deliveries as readonly MessageDelivery<z.output<Schema>>[]),
});

/** A message that could not be handled, as stored in the dead letters. */
export type DeadMessage = {
  /** The durable whose handler dead-lettered it. */
  readonly durable: string;
  /** The message's original subject, to which a replay publishes it. */
  readonly subject: string;
  readonly reason: string;
  readonly detail: string;
  /** The original message in its stream; absent when the headers of the dead letter do not name it. */
  readonly message?: Pick<MessageDelivery<unknown>, "publishedAt" | "sequence">;
  /** The original body; undefined when it is not JSON. Not validated: the message may be dead because its body is invalid. */
  readonly body: unknown;
};

/**
 * Declares a handler of dead letters. Works as {@link defineHandler}, but the bus logs and drops a dead letter that can never succeed
 * instead of storing another one.
 */
export const defineDeadLetterHandler = (definition: Single<DeadMessage>): Handler => ({
  ...oneByOne(definition),
  pattern: "push.dlq.v1.:durable",
  parserOf: (received) => (body) => ({ ok: true, data: deadLetterOf(received, body) }),
  idOf: (fact) => factId(fact, ""),
});

/** `ce-id`, else the id of its publish (its Nats-Msg-Id without the contract's name), else stream and sequence. */
const factId = ({ headers, stream, sequence }: Parameters<Handler["idOf"]>[0], prefix: string): string => {
  const messageId = headers?.get(brokerHeaders.messageId) ?? "";
  const id = messageId.startsWith(prefix) ? messageId.slice(prefix.length) : messageId;
  return headers?.get(headerNames.ceId) || id || `${stream}/${sequence}`;
};

const deadLetterOf = ({ subject, headers }: Received, body: unknown): DeadMessage => {
  const publishedAt = new Date(headers?.get(headerNames.deadPublishedAt) ?? "");
  const sequence = Number(headers?.get(headerNames.deadSequence) || Number.NaN);
  const known = !Number.isNaN(publishedAt.getTime()) && Number.isSafeInteger(sequence);
  return {
    durable: subject.slice("push.dlq.v1.".length),
    subject: headers?.get(headerNames.deadSubject) ?? "",
    reason: headers?.get(headerNames.deadReason) ?? "",
    detail: headers?.get(headerNames.deadDetail) ?? "",
    body,
    ...(known ? { message: { publishedAt, sequence } } : {}),
  };
};

const parseBody = ({ schema, isPlain }: MessageContract, data: unknown): Parsed => {
  if (data === undefined) return { ok: false, detail: "the body is not JSON" };
  if (isPlain?.(data)) return { ok: true, data };
  const parsed = schema.safeParse(data);
  return parsed.success ? { ok: true, data: parsed.data } : malformed(parsed.error);
};

/** The data of all events of a joined message; undefined if one does not match the contract, or if there is none. */
export const parseEvents = (
  handler: Handler,
  message: Received,
  events: readonly BatchedEvent[],
): readonly unknown[] | undefined => {
  const parse = handler.parserOf(message);
  const all: unknown[] = [];
  for (const { data } of events) {
    const parsed = parse(data);
    if (!parsed.ok) return undefined;
    all.push(parsed.data);
  }
  return all.length > 0 ? all : undefined;
};

const malformed = (error: z.ZodError): Parsed => ({ ok: false, detail: describeIssues(error).join("; ") });

/** The stream that a handler's durable reads. */
export const streamOf = ({ durable }: Pick<Handler, "durable">) => durables[durable].stream;
