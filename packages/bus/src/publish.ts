import type { MessageContract } from "@herald/contracts";
import { HeraldError, inSpan } from "@herald/kit";
import type { z } from "zod";
import { codeOf } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { brokerHeaders, messageIdOf, outgoingHeaders } from "./message-headers.ts";
import { requestAck } from "./stream-request.ts";

export type PublishOptions = {
  /**
   * The id of the fact, unique within the contract. Retries after an unknown outcome keep it, and the stream stores it once within two
   * minutes. A deliberate replay needs a new id, or the stream drops it as a duplicate.
   */
  readonly id: string;
  /** How long to wait for the stream's ack; 2.5 s by default. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Published = {
  /** The message's sequence in its stream; of the earlier one when it is a duplicate. */
  readonly sequence: number;
  /** The stream already had a message with this id and did not store this one. */
  readonly duplicate: boolean;
};

/**
 * Publishes one message and resolves after the stream's ack: the message is then on disk.
 * Throws HeraldError bus-unavailable (not connected, no ack in time, no stream covers the subject) or queue-full, and a ZodError for data
 * that does not match the contract. After bus-unavailable the message may still be stored: publish it again with the same id.
 */
export const publish = <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  options: PublishOptions,
): Promise<Published> => publishAs(bus, contract, data, { ...options, messageId: messageIdOf(contract, options.id) });

/**
 * {@link publish} for a message that a full queue may refuse many times: encodes it once; each call of the result tries to publish it.
 * Does not validate the data: its author did, and its consumer does.
 */
export const preparePublish = <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  { id, timeoutMs, headers }: PublishOptions,
): (() => Promise<Published>) => {
  const message: EncodedMessage = {
    pattern: contract.pattern,
    subject: contract.subject(data),
    body: Buffer.from(JSON.stringify(data)),
    messageId: messageIdOf(contract, id),
    headers,
  };
  return () => publishEncoded(connectionOf(bus), message, timeoutMs);
};

/** {@link publish} with a given Nats-Msg-Id. */
export const publishAs = async <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  options: Omit<PublishOptions, "id"> & { readonly messageId: string },
): Promise<Published> =>
  publishEncoded(connectionOf(bus), { ...options, ...encodeData(contract, data) }, options.timeoutMs);

/** Validates data and encodes it for the wire. Throws a ZodError for data that does not match the contract. */
export const encodeData = <Schema extends z.ZodType>(contract: MessageContract<Schema>, data: z.output<Schema>) => {
  const valid = contract.isPlain?.(data) ? data : (contract.schema.parse(data) as z.output<Schema>);
  return { pattern: contract.pattern, subject: contract.subject(valid), body: JSON.stringify(valid) };
};

export type EncodedMessage = Omit<ReturnType<typeof encodeData>, "body"> & {
  readonly body: string | Uint8Array;
  readonly messageId: string;
  readonly headers?: PublishOptions["headers"];
};

/** Publishes one validated message. */
export const publishEncoded = (
  connection: Connection,
  message: EncodedMessage,
  timeoutMs?: number,
): Promise<Published> =>
  publishing(connection, message.pattern, async () => {
    const headers = outgoingHeaders({ ...message.headers, [brokerHeaders.messageId]: message.messageId });
    const ack = await requestAck(connection, message.subject, message.body, headers, timeoutMs);
    return { sequence: ack.seq, duplicate: ack.duplicate === true };
  });

/** Records one producer span and one duration for what `send` sends. */
export const publishing = async <Result extends { duplicate?: boolean }>(
  connection: Connection,
  pattern: string,
  send: () => Promise<Result>,
): Promise<Result> => {
  const startedAt = performance.now();
  const observe = (outcome: string) =>
    connection.telemetry.publishing.record((performance.now() - startedAt) / 1000, { pattern, outcome });
  const attributes = {
    "messaging.system": "nats",
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
    "messaging.destination.template": pattern,
  };
  try {
    const result = await inSpan(`publish ${pattern}`, { kind: "producer", attributes }, send);
    connection.refused = undefined;
    observe(result.duplicate === true ? "duplicate" : "stored");
    return result;
  } catch (error) {
    if (error instanceof HeraldError && error.code === "bus-unavailable")
      connection.refused = { reason: error.message, at: performance.now() };
    observe(codeOf(error));
    throw error;
  }
};
