import { type DurableName, durables, headerNames, type MessageContract } from "@herald/contracts";
import { describeIssues } from "@herald/kit";
import type { z } from "zod";
import { brokerHeaders, messageIdOf } from "./message-headers.ts";
import { parseJson } from "./parse-json.ts";
import type { Received } from "./received-message.ts";

/** One message as a handler sees it: no broker word in it. */
export type Delivery<Data> = {
  readonly data: Data;
  /** The id of the fact: `ce-id`, else the id it was published with, else its place in the stream. */
  readonly id: string;
  readonly subject: string;
  /** 1 for the first time. More says only that an earlier time was not settled. */
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  /** Its number in its stream, the same each time it comes. Two messages can be published in one millisecond. */
  readonly sequence: number;
  /** Aborted when the service stops and its deadline has passed. */
  readonly signal: AbortSignal;
  /** A header of the message. */
  header(name: string): string | undefined;
  /**
   * Runs `work`, and runs it again while it throws that something is unavailable (`bus-unavailable`, `queue-full`, …), every 25 ms for a full queue.
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
  readonly parse: (received: Received) => Parsed;
  /** The id of the fact. */
  readonly idOf: (received: Received) => string;
  /** How many jobs run at a time. */
  readonly concurrency: number;
  /** How many messages a job takes at most, and how long it waits for them. */
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
  parse: (received) => parseBody(definition.message, received),
  idOf: (received) => factId(received, messageIdOf(definition.message, "")),
  concurrency: definition.concurrency ?? defaultConcurrency,
  batch: { size: 1, waitMs: 0 },
  async handle([delivery]) {
    if (delivery !== undefined) await definition.handle(delivery as Delivery<z.output<Schema>>);
  },
});

/**
 * Declares what happens with several messages of a durable at once, for a write in bulk. They are settled one by one: when the batch
 * fails for another reason than something being unavailable, each of its messages is handled alone, so that a bad one takes no other with it.
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
  /** Whose body some subjects have to have too. The handler gets it with all of its fields, known or not. */
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

/** A message that could not be processed, as the dead letters hold it. */
export type DeadLetter = {
  /** Whose handler gave it up. */
  readonly durable: string;
  /** Where it was, and where a replay would go. */
  readonly subject: string;
  readonly reason: string;
  readonly detail: string;
  /** Which message of its stream it was; absent in a letter that does not say. */
  readonly message?: Pick<Delivery<unknown>, "publishedAt" | "sequence">;
  /** The body as it was; undefined when it is not JSON. Not checked: that may be why it is here. */
  readonly body: unknown;
};

/**
 * Declares what happens with each dead letter. As {@link defineHandler}, but what can never succeed here is logged and given up:
 * a dead letter does not become another one.
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

/** Throws nothing: what a stranger's bytes are not is said in the result. */
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
