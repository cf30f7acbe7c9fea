import type { MessageContract } from "@herald/contracts";
import { HeraldError, inSpan } from "@herald/kit";
import type { z } from "zod";
import { codeOf } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { brokerHeaders, messageIdOf, outgoingHeaders } from "./message-headers.ts";
import { requestAck } from "./stream-request.ts";

export type PublishOptions = {
  /**
   * The id of the fact, unique among the contract's. A retry after an unknown outcome keeps it, and the stream takes it once within
   * two minutes; a deliberate replay needs a new one, or it is swallowed.
   */
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
 * Throws HeraldError bus-unavailable (not connected, no ack in time, no stream takes the subject) or queue-full, and a ZodError for data
 * that is not what the contract says. After bus-unavailable the message may still have been stored: publish it again with the same id.
 */
export const publish = <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  options: PublishOptions,
): Promise<Published> => publishAs(bus, contract, data, { ...options, messageId: messageIdOf(contract, options.id) });

/**
 * {@link publish} for a message that a full queue may refuse many times: it is made ready once, and each call of the result tries
 * to publish it. What the data is was checked where it was made; whoever reads the message checks it as any other.
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

/** {@link publish} with the Nats-Msg-Id as it is given. */
export const publishAs = async <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  options: Omit<PublishOptions, "id"> & { readonly messageId: string },
): Promise<Published> =>
  publishEncoded(connectionOf(bus), { ...options, ...encodeData(contract, data) }, options.timeoutMs);

/** Data that is what its contract says, as it goes over the wire. Throws a ZodError for any other. */
export const encodeData = <Schema extends z.ZodType>(contract: MessageContract<Schema>, data: z.output<Schema>) => {
  const valid = contract.isPlain?.(data) ? data : (contract.schema.parse(data) as z.output<Schema>);
  return { pattern: contract.pattern, subject: contract.subject(valid), body: JSON.stringify(valid) };
};

export type EncodedMessage = Omit<ReturnType<typeof encodeData>, "body"> & {
  readonly body: string | Uint8Array;
  readonly messageId: string;
  readonly headers?: PublishOptions["headers"];
};

/** Publishes one message that was checked. */
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

/** One producer span and one observation for whatever is sent to `pattern`. */
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
