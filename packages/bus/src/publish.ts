import type { MessageContract } from "@herald/contracts";
import { inSpan } from "@herald/kit";
import { nuid } from "@nats-io/transport-node";
import type { z } from "zod";
import { apiCodes, codeOf, notConnected } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { brokerHeaders, outgoingHeaders } from "./message-headers.ts";
import { requestAck } from "./stream-request.ts";

export type PublishOptions = {
  /** The id of the fact, sent as Nats-Msg-Id. A retry after an unknown outcome keeps it; a deliberate replay needs a new one, or it is swallowed. */
  readonly id: string;
  /** How long to wait for the stream's ack; 2.5 s when absent. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Published = {
  /** The message's sequence in its stream; of the earlier one when it is a duplicate. */
  readonly sequence: number;
  /** The stream has a message with this id already, and did not take this one. */
  readonly duplicate: boolean;
};

/**
 * Publishes one message and resolves after the stream's ack: it is on disk then.
 * Throws HeraldError bus-away (not connected, no ack in time, no stream takes the subject) or queue-full, and a ZodError for data
 * that is not what the contract says. After bus-away the message may still have been stored: publish it again with the same id.
 */
export const publish = async <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  options: PublishOptions,
): Promise<Published> => {
  const connection = connectionOf(bus);
  const valid = contract.schema.parse(data) as z.output<Schema>;
  const subject = contract.subject(valid);
  return publishing(connection, contract.pattern, async () => {
    const headers = outgoingHeaders({ ...options.headers, [brokerHeaders.messageId]: options.id });
    const ack = await requestAck(connection, subject, JSON.stringify(valid), headers, options.timeoutMs);
    return { sequence: ack.seq, duplicate: ack.duplicate === true };
  });
};

/** One producer span and one observation for whatever is sent to `pattern`. */
export const publishing = async <Result extends { duplicate?: boolean }>(
  { telemetry }: Connection,
  pattern: string,
  send: () => Promise<Result>,
): Promise<Result> => {
  const startedAt = performance.now();
  const observe = (outcome: string) =>
    telemetry.publishing.record((performance.now() - startedAt) / 1000, { pattern, outcome });
  const attributes = { "messaging.system": "nats", "messaging.destination.template": pattern };
  try {
    const result = await inSpan(`publish ${pattern}`, { kind: "producer", attributes }, send);
    observe(result.duplicate === true ? "duplicate" : "stored");
    return result;
  } catch (error) {
    observe(codeOf(error));
    throw error;
  }
};

/** The broker takes at most 1,000 messages in a batch. */
const batchLimit = 1000;

export type Message<Schema extends z.ZodType = z.ZodType> = {
  readonly contract: MessageContract<Schema>;
  readonly data: z.output<Schema>;
  readonly id: string;
};

type Messages<Schemas extends readonly z.ZodType[]> = { readonly [Index in keyof Schemas]: Message<Schemas[Index]> };

/**
 * Publishes up to 1,000 messages of one stream as one atomic batch: all are stored, or none. The stream must allow it.
 * A batch that holds an id which the stream has already is sent message by message instead, since only a repeat can do that.
 * Throws as {@link publish} does.
 */
export const publishTogether = async <const Schemas extends readonly z.ZodType[]>(
  bus: Bus,
  messages: Messages<Schemas>,
): Promise<void> => {
  const [first, ...rest] = messages as unknown as Message[];
  if (first === undefined) return;
  if (rest.length === 0) {
    await publish(bus, first.contract, first.data, { id: first.id });
    return;
  }
  if (rest.length >= batchLimit) throw new RangeError(`a batch holds at most ${batchLimit} messages`);
  try {
    await publishBatch(connectionOf(bus), [first, ...rest]);
  } catch (error) {
    if (!isDuplicateInBatch(error)) throw error;
    await Promise.all([first, ...rest].map(({ contract, data, id }) => publish(bus, contract, data, { id })));
  }
};

const isDuplicateInBatch = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === apiCodes.duplicateInBatch;

/** Only the last message is answered, so a batch costs one round trip. Patterns of a batch count as one. */
const publishBatch = async (connection: Connection, messages: readonly Message[]): Promise<void> => {
  const encoded = messages.map(({ contract, data, id }) => {
    const valid = contract.schema.parse(data);
    return { subject: contract.subject(valid), body: JSON.stringify(valid), id };
  });
  const patterns = new Set(messages.map(({ contract }) => contract.pattern));
  await publishing(connection, [...patterns].join(" "), async () => {
    if (!connection.connected) throw notConnected();
    const batchId = nuid.next();
    let ack = {};
    for (const [index, { subject, body, id }] of encoded.entries()) {
      const last = index === encoded.length - 1;
      const headers = outgoingHeaders({
        [brokerHeaders.messageId]: id,
        [brokerHeaders.batchId]: batchId,
        [brokerHeaders.batchSequence]: String(index + 1),
        ...(last ? { [brokerHeaders.batchCommit]: "1" } : {}),
      });
      if (last) ack = await requestAck(connection, subject, body, headers);
      else connection.nc.publish(subject, body, { headers });
    }
    return ack;
  });
};
