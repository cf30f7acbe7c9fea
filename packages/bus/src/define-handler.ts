import { type DurableName, durables, headerNames, type MessageContract } from "@herald/contracts";
import { describeIssues } from "@herald/kit";
import type { z } from "zod";
import { brokerHeaders, messageIdOf } from "./message-format.ts";
import type { Received } from "./received-message.ts";

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

/** A durable and its handler. Made by {@link defineHandler} and {@link defineBatchHandler}, run by `consume`. */
export type Handler = {
  readonly durable: DurableName;
  /** The subject pattern, used as the name of spans and metrics. */
  readonly pattern: string;
  readonly parse: (received: Received) => Parsed;
  /** The id of the fact. */
  readonly idOf: (received: Received) => string;
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

const ofContract = (message: MessageContract): Pick<Handler, "pattern" | "parse" | "idOf"> => ({
  pattern: message.pattern,
  parse: (received) => parseBody(message, received),
  idOf: (received) => factId(received, messageIdOf(message, "")),
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
  parse: (received) => {
    const parsed = parseBody(definition.message, received);
    const contract = parsed.ok ? definition.contractOf?.(received.subject) : undefined;
    if (!parsed.ok || contract === undefined || contract.isPlain?.(parsed.data)) return parsed;
    const { error } = contract.schema.safeParse(parsed.data);
    return error ? malformed(error) : parsed;
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
  parse: (received) => ({ ok: true, data: deadLetterOf(received) }),
  idOf: (received) => factId(received, ""),
});

/** `ce-id`, else the id of its publish (its Nats-Msg-Id without the contract's name), else stream and sequence. */
const factId = ({ headers, stream, sequence }: Received, prefix: string): string => {
  const messageId = headers?.get(brokerHeaders.messageId) ?? "";
  const id = messageId.startsWith(prefix) ? messageId.slice(prefix.length) : messageId;
  return headers?.get(headerNames.ceId) || id || `${stream}/${sequence}`;
};

const deadLetterOf = (received: Received): DeadMessage => {
  const { subject, headers } = received;
  const publishedAt = new Date(headers?.get(headerNames.deadPublishedAt) ?? "");
  const sequence = Number(headers?.get(headerNames.deadSequence) || Number.NaN);
  const known = !Number.isNaN(publishedAt.getTime()) && Number.isSafeInteger(sequence);
  return {
    durable: subject.slice("push.dlq.v1.".length),
    subject: headers?.get(headerNames.deadSubject) ?? "",
    reason: headers?.get(headerNames.deadReason) ?? "",
    detail: headers?.get(headerNames.deadDetail) ?? "",
    body: received.json(),
    ...(known ? { message: { publishedAt, sequence } } : {}),
  };
};

const parseBody = ({ schema, isPlain }: MessageContract, received: Received): Parsed => {
  const data = received.json();
  if (data === undefined) return { ok: false, detail: "the body is not JSON" };
  if (isPlain?.(data)) return { ok: true, data };
  const parsed = schema.safeParse(data);
  return parsed.success ? { ok: true, data: parsed.data } : malformed(parsed.error);
};

const malformed = (error: z.ZodError): Parsed => ({ ok: false, detail: describeIssues(error).join("; ") });

/** The stream that a handler's durable reads. */
export const streamOf = ({ durable }: Pick<Handler, "durable">) => durables[durable].stream;
