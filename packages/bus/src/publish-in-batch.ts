import type { MessageContract } from "@herald/contracts";
import type { z } from "zod";
import { batchLimit, requestBatch } from "./atomic-batch.ts";
import { apiCodes } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { brokerHeaders, messageIdOf, outgoingHeaders } from "./message-headers.ts";
import { type EncodedMessage, encodeData, type publish, publishEncoded, publishing } from "./publish.ts";

export type Message<Schema extends z.ZodType = z.ZodType> = {
  readonly contract: MessageContract<Schema>;
  readonly data: z.output<Schema>;
  readonly id: string;
  /**
   * Runs a function where the message came from (`AsyncLocalStorage.snapshot()`), so that each message of a batch that
   * several requests share carries its own request id and trace. Absent: where the batch is published.
   */
  readonly runInContext?: <Result>(fn: () => Result) => Result;
};

type Messages<Schemas extends readonly z.ZodType[]> = { readonly [Index in keyof Schemas]: Message<Schemas[Index]> };

/** A message with its Nats-Msg-Id. */
export type Outgoing = Omit<Message, "id"> & {
  readonly messageId: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A validated message, encoded for the wire. */
export type Encoded = EncodedMessage & Pick<Outgoing, "runInContext">;

/** Throws a ZodError for data that does not match its contract. */
export const encode = ({ contract, data, ...rest }: Outgoing): Encoded => ({ ...rest, ...encodeData(contract, data) });

/**
 * Publishes up to 1,000 messages of one stream as one atomic batch: the stream stores all or none. The stream must allow batches.
 * A batch with an id that the stream already has is a repeat: it is sent message by message.
 * Throws as {@link publish} does.
 */
export const publishInBatch = <const Schemas extends readonly z.ZodType[]>(
  bus: Bus,
  messages: Messages<Schemas>,
): Promise<void> =>
  sendBatched(
    bus,
    (messages as unknown as Message[]).map(({ id, ...message }) =>
      encode({ ...message, messageId: messageIdOf(message.contract, id) }),
    ),
  );

/** {@link publishInBatch} with given Nats-Msg-Ids. Sends fewer than `atomicFrom` message by message. */
export const sendBatched = async (bus: Bus, messages: readonly Encoded[], atomicFrom = 2): Promise<void> => {
  const [first] = messages;
  if (first === undefined) return;
  if (messages.length > batchLimit) throw new RangeError(`a batch holds at most ${batchLimit} messages`);
  if (messages.length >= atomicFrom) {
    try {
      await publishBatch(connectionOf(bus), messages);
      return;
    } catch (error) {
      if (!isDuplicateInBatch(error)) throw error;
    }
  }
  await Promise.all(messages.map((message) => sendAlone(bus, message)));
};

const here = <Result>(fn: () => Result): Result => fn();

const sendAlone = async (bus: Bus, { runInContext = here, ...message }: Encoded): Promise<void> => {
  await runInContext(() => publishEncoded(connectionOf(bus), message));
};

const isDuplicateInBatch = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === apiCodes.duplicateInBatch;

/** Patterns of a batch count as one. */
const publishBatch = async (connection: Connection, messages: readonly Encoded[]): Promise<void> => {
  const batch = messages.map(({ subject, body, messageId, headers: own, runInContext = here }) => ({
    subject,
    body,
    headers: (more: Readonly<Record<string, string>>) =>
      runInContext(() => outgoingHeaders({ ...own, [brokerHeaders.messageId]: messageId, ...more })),
  }));
  const patterns = new Set(messages.map(({ pattern }) => pattern));
  await publishing(connection, [...patterns].join(" "), () => requestBatch(connection, batch));
};
