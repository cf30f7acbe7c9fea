import { type DurableName, durables, headerNames, type MessageContract } from "@herald/contracts";
import { describeIssues } from "@herald/kit";
import type { z } from "zod";
import { brokerHeaders, messageIdOf } from "./message-headers.ts";
import { parseJson } from "./parse-json.ts";
import type { Received } from "./received-message.ts";

/** One message as a handler sees it, free of broker details. */
export type Delivery<Data> = {
  readonly data: Data;
  /** The id of the fact: `ce-id`, else the id it was published with, else its place in the stream. */
  readonly id: string;
  readonly subject: string;
  /** 1 for the first delivery. A higher number means that an earlier delivery was not settled. */
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  /** Its number in its stream, equal for every delivery. Orders messages of the same millisecond. */
  readonly sequence: number;
  /** Aborted when the service stops and its deadline has passed. */
  readonly signal: AbortSignal;
  /** A header of the message. */
  header(name: string): string | undefined;
  /**
   * Runs `work` and retries it while it throws that a dependency is unavailable (`bus-unavailable`, `queue-full`, …), every 25 ms for a full
   * queue. Meanwhile the message is held and its permit is free for others. When too many handlers wait already, or the service stops, it
   * throws the error of `work`: rethrow it, and the bus holds the whole message.
   */
  hold<Result>(work: () => Promise<Result>): Promise<Result>;
};

/** A durable and its handler. Made by {@link defineHandler} and {@link defineBatchHandler}, run by `consume`. */
export type Handler = {
  readonly durable: DurableName;
  /** The subject pattern: names spans and metrics. */
  readonly pattern: string;
  readonly parse: (received: Received) => Parsed;
  /** The id of the fact. */
  readonly idOf: (received: Received) => string;
  /** How many batches run at a time. */
  readonly concurrency: number;
  /** The largest batch, and how long its first message waits for others. */
  readonly batch: { readonly size: number; readonly waitMs: number };
  readonly handle: (deliveries: readonly Delivery<unknown>[]) => Promise<void>;
};

export type Parsed =
  | { readonly ok: true; readonly data: unknown }
  /** Not JSON, or not what the contract says. */
  | { readonly ok: false; readonly detail: string };

/** Enough to cover the waits of a database that answers in milliseconds; a handler that needs more says so. */
const defaultConcurrency = 16;

/**
 * Declares the handler of a durable. When it returns, the bus acks; when it throws, the error's table entry decides whether the bus
 * dead-letters, holds or retries the message. It must be repeatable: a message can be delivered more than once.
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
  parse: (received) => parseBody(definition.message, received),
  idOf: (received) => factId(received, messageIdOf(definition.message, "")),
  concurrency: definition.concurrency ?? defaultConcurrency,
  batch: { size: 1, waitMs: 0 },
  async handle([delivery]) {
    if (delivery !== undefined) await definition.handle(delivery as Delivery<z.output<Schema>>);
  },
});

/**
 * Declares a handler that takes several messages of a durable at once, for bulk writes. Each message is settled alone: when a batch fails
 * although every dependency is available, the bus handles its messages one by one, so that a bad message fails no other.
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
  /** A second contract that bodies on some subjects must match. The handler gets all fields, known or not. */
  contractOf?(subject: string): Pick<MessageContract, "schema" | "isPlain"> | undefined;
  handle(deliveries: readonly Delivery<z.output<Schema>>[]): Promise<void>;
}): Handler => ({
  durable: definition.durable,
  pattern: definition.message.pattern,
  parse: (received) => {
    const parsed = parseBody(definition.message, received);
    if (!parsed.ok) return parsed;
    const contract = definition.contractOf?.(received.subject);
    if (contract === undefined || contract.isPlain?.(parsed.data)) return parsed;
    const { error } = contract.schema.safeParse(parsed.data);
    return error ? malformed(error) : parsed;
  },
  idOf: (received) => factId(received, messageIdOf(definition.message, "")),
  concurrency: definition.concurrency ?? 1,
  batch: { size: definition.size, waitMs: definition.waitMs },
  handle: (deliveries) => definition.handle(deliveries as readonly Delivery<z.output<Schema>>[]),
});

/** A message that could not be handled, as stored in the dead letters. */
export type DeadLetter = {
  /** The durable whose handler dead-lettered it. */
  readonly durable: string;
  /** Its original subject, where a replay publishes it. */
  readonly subject: string;
  readonly reason: string;
  readonly detail: string;
  /** The original message in its stream; absent when the letter does not name it. */
  readonly message?: Pick<Delivery<unknown>, "publishedAt" | "sequence">;
  /** The original body; undefined when it is not JSON. Not validated: it may be dead because it is invalid. */
  readonly body: unknown;
};

/**
 * Declares a handler of dead letters. Works as {@link defineHandler}, but a dead letter that can never succeed is logged and dropped
 * instead of becoming another one.
 */
export const defineDeadLetterHandler = (definition: {
  readonly durable: DurableName;
  readonly concurrency?: number;
  handle(delivery: Delivery<DeadLetter>): Promise<void>;
}): Handler => ({
  durable: definition.durable,
  pattern: "push.dlq.v1.:durable",
  parse: (received) => ({ ok: true, data: deadLetterOf(received) }),
  idOf: (received) => factId(received, ""),
  concurrency: definition.concurrency ?? defaultConcurrency,
  batch: { size: 1, waitMs: 0 },
  async handle([delivery]) {
    if (delivery !== undefined) await definition.handle(delivery as Delivery<DeadLetter>);
  },
});

/** `ce-id`, else the id it was published with, which stands behind the contract's name, else its place in the stream. */
const factId = ({ headers, stream, sequence }: Received, prefix: string): string => {
  const messageId = headers?.get(brokerHeaders.messageId) ?? "";
  const id = messageId.startsWith(prefix) ? messageId.slice(prefix.length) : messageId;
  return headers?.get(headerNames.ceId) || id || `${stream}/${sequence}`;
};

const deadLetterOf = ({ subject, headers, body }: Received): DeadLetter => {
  const json = readJson(body);
  const publishedAt = new Date(headers?.get(headerNames.deadPublishedAt) ?? "");
  const sequence = Number(headers?.get(headerNames.deadSequence) || Number.NaN);
  const known = !Number.isNaN(publishedAt.getTime()) && Number.isSafeInteger(sequence);
  return {
    durable: subject.slice("push.dlq.v1.".length),
    subject: headers?.get(headerNames.deadSubject) ?? "",
    reason: headers?.get(headerNames.deadReason) ?? "",
    detail: headers?.get(headerNames.deadDetail) ?? "",
    body: json.ok ? json.data : undefined,
    ...(known ? { message: { publishedAt, sequence } } : {}),
  };
};

/** Never throws: the result says when the body is not JSON. */
const readJson = (body: Uint8Array): Parsed => {
  try {
    return { ok: true, data: parseJson(body) };
  } catch {
    return { ok: false, detail: "the body is not JSON" };
  }
};

const parseBody = ({ schema, isPlain }: MessageContract, received: Received): Parsed => {
  const json = readJson(received.body);
  if (!json.ok || isPlain?.(json.data)) return json;
  const parsed = schema.safeParse(json.data);
  return parsed.success ? { ok: true, data: parsed.data } : malformed(parsed.error);
};

const malformed = (error: z.ZodError): Parsed => ({ ok: false, detail: describeIssues(error).join("; ") });

/** The stream that a handler's durable reads. */
export const streamOf = ({ durable }: Pick<Handler, "durable">) => durables[durable].stream;
