import { type DurableName, durables, type MessageContract, type StreamName, streams } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { createInbox, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import type { z } from "zod";
import { notConnected, toBusError } from "./bus-error.ts";
import { askJetStream, type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { readJson } from "./message-format.ts";

/** A message in its stream. */
export type Stored = {
  readonly sequence: number;
  readonly subject: string;
  readonly headers: MsgHdrs;
  readonly body: Uint8Array;
  readonly storedAt: Date;
  /** The number of matching messages after this one. */
  readonly pending: number;
};

type Query =
  /** Up to `batch` messages of the subjects `next_by_subj`, from `seq` or a time on; at most `max_bytes`, but at least one message. */
  | {
      readonly seq?: number;
      readonly start_time?: string;
      readonly batch: number;
      readonly next_by_subj: string;
      readonly max_bytes?: number;
    }
  /** The last message of each subject. */
  | { readonly multi_last: readonly string[] };

/** The broker answers in milliseconds; a caller must know within seconds that it is unavailable. */
const timeoutMs = 5_000;

/** The broker's codes for the end of an answer, and for an answer without messages. */
const endOfBatch = 204;
const noMessages = 404;
const noResponders = 503;

/**
 * Reads messages of a stream that allows direct gets, without affecting its consumers. `keep` selects the needed part of each message, so
 * that large bodies can be freed. Throws HeraldError bus-unavailable. The client's own `getBatch` leaks a subscription at each call, and
 * never ends if the connection is lost during the read.
 */
export const directRead = <Kept>(
  connection: BusConnection,
  stream: StreamName | `KV_${string}`,
  query: Query,
  keep: (message: Stored) => Kept,
): Promise<Kept[]> => {
  const { nc } = connection;
  if (!connection.connected) return Promise.reject(notConnected());
  return new Promise((resolve, reject) => {
    const kept: Kept[] = [];
    const end = (error?: unknown) => {
      clearTimeout(timer);
      connection.waiting.delete(lost);
      subscription.unsubscribe();
      if (error === undefined) resolve(kept);
      else reject(toBusError(error));
    };
    const lost = () => end(notConnected());
    const inbox = createInbox(connection.inboxPrefix);
    const subscription = nc.subscribe(inbox, {
      callback: (error, msg) => {
        if (error) return end(error);
        const code = msg.headers?.code ?? 0;
        if (code === endOfBatch || code === noMessages) return end();
        if (code === noResponders) return end(notAnswering());
        if (code !== 0) return end(new Error(`a direct get of ${stream} is refused: ${msg.headers?.description}`));
        try {
          kept.push(keep(toStored(msg)));
        } catch (problem) {
          end(problem);
        }
      },
    });
    connection.waiting.add(lost);
    const timer = setTimeout(() => end(notAnswering()), timeoutMs);
    nc.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(query), { reply: inbox });
  });
};

const notAnswering = () => new HeraldError("bus-unavailable", "the message bus does not answer");

/** The broker appends its headers to the message's own, so its value is the last of a name. */
const toStored = ({ headers, data }: Msg): Stored => {
  if (headers === undefined) throw new TypeError("a direct get was answered without headers");
  return {
    sequence: Number(headers.last("Nats-Sequence")),
    subject: headers.last("Nats-Subject"),
    headers,
    body: data,
    storedAt: new Date(headers.last("Nats-Time-Stamp")),
    pending: Number(headers.last("Nats-Num-Pending") || 0),
  };
};

/**
 * Counts a stream's messages on the subjects that match. The broker lists all these subjects in its answer, about 90 bytes each: call
 * this rarely if there may be many subjects. Throws HeraldError bus-unavailable.
 */
export const countMessages = async (bus: Bus, stream: StreamName, filter: string): Promise<number> =>
  countOf(await streamState(connectionOf(bus), stream, filter));

/** The state of a stream, with the message counts of the subjects that match. Throws HeraldError bus-unavailable. */
export const streamState = async (connection: BusConnection, stream: string, filter?: string) => {
  const options = filter === undefined ? undefined : { subjects_filter: filter };
  return (await askJetStream(connection, (jsm) => jsm.streams.info(stream, options))).state;
};

/** Sums the message counts of the subjects in a state. */
export const countOf = ({ subjects = {} }: StreamInfo["state"]): number =>
  Object.values(subjects).reduce((sum, messages) => sum + messages, 0);

/**
 * The last message of a subject in the stream, even while a consumer processes it; undefined when there is none.
 * Asks any replica first, then the stream's leader if that replica has none, because a replica that was unavailable lags behind.
 * Throws HeraldError bus-unavailable, or schema when the message does not match the contract.
 */
export const lastMessage = async <Schema extends z.ZodType>(
  bus: Bus,
  stream: StreamName,
  subject: string,
  contract: MessageContract<Schema>,
): Promise<{ data: z.output<Schema>; at: Date } | undefined> => {
  const query = { last_by_subj: subject };
  const found = await askJetStream(
    connectionOf(bus),
    async (jsm) => (await jsm.direct.getMessage(stream, query)) ?? (await jsm.streams.getMessage(stream, query)),
  );
  if (found === null) return undefined;
  const parsed = contract.schema.safeParse(readJson(found.data));
  if (!parsed.success)
    throw new HeraldError("schema", `${contract.name}: the stored message does not parse`, { cause: parsed.error });
  return { data: parsed.data as z.output<Schema>, at: found.time };
};

/** A message of a stream: its sequence, and when the stream stored it (ms since 1970), because a recreated stream counts from 1 again. */
type StreamPosition = { readonly sequence: number; readonly at: number };

type ClientQuery = Parameters<JetStreamManager["streams"]["getMessage"]>[1];
/** Servers support `next_by_subj` since 2.9, but the client's type lacks it. */
type PlaceQuery = ClientQuery & { readonly next_by_subj?: string };

/** The broker's nanoseconds are rounded to milliseconds in two different ways. */
const toleranceMs = 1;

/** When the stream stored a message; undefined if it is gone. Asks the leader, because a replica may still hold settled messages. */
const storedAt = async (bus: Bus, stream: StreamName, query: PlaceQuery): Promise<Date | undefined> =>
  (await askJetStream(connectionOf(bus), (jsm) => jsm.streams.getMessage(stream, query)))?.time;

/**
 * Whether a durable may still have to settle this message. Until it is settled, no other process should do its work. Throws HeraldError
 * bus-unavailable, also while the stream is missing.
 */
export const isUnsettled = async (bus: Bus, durable: DurableName, { sequence, at }: StreamPosition) => {
  const { stream } = durables[durable];
  if (sequence < 1) return false;
  const time = await storedAt(bus, stream, { seq: sequence });
  if (time === undefined || Math.abs(time.getTime() - at) > toleranceMs) return false;
  if (streams[stream].retention === "workqueue") return true;
  // A stream without work queue retention keeps settled messages.
  const { ack_floor } = await askJetStream(connectionOf(bus), (jsm) => jsm.consumers.info(stream, durable));
  return sequence > ack_floor.stream_seq;
};

/** When a stream stored its oldest message of a subject; undefined when it holds none. Throws as {@link isUnsettled}. */
export const oldestMessageTime = (bus: Bus, stream: StreamName, subject: string): Promise<Date | undefined> =>
  storedAt(bus, stream, { seq: 1, next_by_subj: subject });

/** Whether a stream holds a message on a subject that matches the filter. Throws as {@link isUnsettled}. */
export const hasMessages = async (bus: Bus, stream: StreamName, filter: string): Promise<boolean> =>
  (await storedAt(bus, stream, { last_by_subj: filter })) !== undefined;
