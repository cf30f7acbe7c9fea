import { setTimeout as sleep } from "node:timers/promises";
import type { MessageContract } from "@herald/contracts";
import { hasCode, inSpan } from "@herald/kit";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { z } from "zod";
import { codeOf, isNoResponders, toBusError } from "./bus-error.ts";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import {
  brokerHeaders,
  contextOf,
  currentOrigin,
  messageIdOf,
  type Origin,
  outgoingHeaders,
} from "./message-format.ts";
import { requestReply } from "./send-request.ts";

type PublishOptions = {
  /**
   * The id of the fact, unique within the contract. Retry with the same id after an unknown outcome: within two minutes the stream stores
   * an id once. A deliberate replay needs a new id, or the stream drops it as a duplicate.
   */
  readonly id: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * Publishes one message and resolves after the stream's ack: the message is then on disk.
 * Throws HeraldError bus-unavailable (not connected, no ack in time, no stream covers the subject) or queue-full, and a ZodError for data
 * that does not match the contract. After bus-unavailable the message may still be stored: publish it again with the same id.
 */
export const publish = async <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  { id, headers }: PublishOptions,
): Promise<StreamAck> => publishEncoded(connectionOf(bus), encode(contract, data, messageIdOf(contract, id), headers));

/**
 * {@link publish} for a message that a full queue may refuse many times. Encodes it once; each call of the result tries to publish it.
 * Does not validate the data: its author has validated it, and its consumer will.
 */
export const preparePublish = <Schema extends z.ZodType>(
  bus: Bus,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  { id }: Pick<PublishOptions, "id">,
): (() => Promise<StreamAck>) => {
  const message: Encoded = {
    pattern: contract.pattern,
    subject: contract.subject(data),
    body: Buffer.from(JSON.stringify(data)),
    messageId: messageIdOf(contract, id),
  };
  return () => publishEncoded(connectionOf(bus), message);
};

type Scheduled<Schema extends z.ZodType> = {
  /** The subject that stores the schedule: `push.sched.v1.…`. A second schedule on the same subject replaces the first. */
  readonly subject: string;
  /** When the broker publishes the message on the contract's subject; a past time publishes at once. */
  readonly at: Date;
  /** The contract of the message. Its subject must belong to the schedule's stream. */
  readonly contract: MessageContract<Schema>;
  readonly data: z.output<Schema>;
  /** The id of the schedule, as with `publish`. The message that the broker publishes later has no id. */
  readonly id: string;
};

/** Schedules a message that the broker publishes later. Resolves after the stream's ack; throws as {@link publish} does. */
export const schedule = async <Schema extends z.ZodType>(
  bus: Bus,
  { subject, at, contract, data, id }: Scheduled<Schema>,
): Promise<void> => {
  const message = encode(contract, data, messageIdOf(contract, id));
  await publishEncoded(connectionOf(bus), {
    ...message,
    pattern: `schedule ${contract.pattern}`,
    subject,
    headers: { [brokerHeaders.schedule]: `@at ${at.toISOString()}`, [brokerHeaders.scheduleTarget]: message.subject },
  });
};

/** A validated message, encoded for the wire. */
export type Encoded = {
  readonly pattern: string;
  readonly subject: string;
  readonly body: string | Uint8Array;
  /** Its Nats-Msg-Id. */
  readonly messageId: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The request that it is of; absent: the active one. */
  readonly origin?: Origin | undefined;
};

/** Throws a ZodError for data that does not match the contract. */
export const encode = <Schema extends z.ZodType>(
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  messageId: string,
  headers?: Encoded["headers"],
) => {
  const valid = contract.isPlain?.(data) ? data : (contract.schema.parse(data) as z.output<Schema>);
  const { pattern } = contract;
  const body = contract.textOf?.(valid) ?? JSON.stringify(valid);
  return { pattern, subject: contract.subject(valid), body, messageId, headers };
};

export const publishEncoded = (connection: BusConnection, message: Encoded): Promise<StreamAck> =>
  publishing(connection, message, () => {
    const own = { ...message.headers, [brokerHeaders.messageId]: message.messageId };
    // The active trace is the span of this publish, which continues the one of its origin.
    const origin = message.origin && { ...currentOrigin(), requestId: message.origin.requestId };
    return requestAck(connection, message.subject, message.body, outgoingHeaders(own, origin));
  });

/** Runs `send` and records one producer span, of `origin` or below the active one, and one duration. */
export const publishing = async <Result extends { duplicate?: boolean }>(
  connection: BusConnection,
  { pattern, origin }: Pick<Encoded, "pattern" | "origin">,
  send: () => Promise<Result>,
): Promise<Result> => {
  const startedAt = performance.now();
  let outcome = "stored";
  const attributes = {
    "messaging.system": "nats",
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
    "messaging.destination.template": pattern,
  };
  try {
    const result = await inSpan(
      `publish ${pattern}`,
      { kind: "producer", attributes, ...(origin && { parent: contextOf(origin) }) },
      send,
    );
    connection.refused = undefined;
    if (result.duplicate) outcome = "duplicate";
    return result;
  } catch (error) {
    if (hasCode(error, "bus-unavailable")) connection.refused = { reason: error.message, at: performance.now() };
    outcome = codeOf(error);
    throw error;
  } finally {
    connection.telemetry.publishing.record((performance.now() - startedAt) / 1000, { pattern, outcome });
  }
};

/** A stream answers in milliseconds; a caller must know within three seconds that the bus is unavailable. */
const publishTimeoutMs = 2_500;

/** A stream of three replicas accepts nothing for some 100 ms while it elects a leader. It stores nothing then, so a retry is safe. */
const electionRetryMs = [50, 150, 300];

/** `seq` is the message's sequence in its stream; for a duplicate, that of the earlier message. */
export type StreamAck = { readonly seq: number; readonly duplicate?: boolean };
type StreamReply = StreamAck | { readonly error: { code: number; description: string; err_code: number } };

/** Sends one message to a stream and resolves with the stream's ack. Throws bus-unavailable, queue-full, or the broker's own error. */
export const requestAck = async (
  connection: BusConnection,
  subject: string,
  payload: Uint8Array | string,
  headers: MsgHdrs,
): Promise<StreamAck> => {
  for (let tries = 0; ; tries++) {
    try {
      const reply: StreamReply = (await requestReply(connection, subject, payload, headers, publishTimeoutMs)).json();
      if ("error" in reply) throw new JetStreamApiError(reply.error);
      return reply;
    } catch (error) {
      const delay = electionRetryMs[tries];
      if (delay === undefined || !isNoResponders(error)) throw toBusError(error);
      await sleep(delay);
    }
  }
};
