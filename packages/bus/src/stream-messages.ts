import { type DurableName, durables, type StreamName, streams } from "@herald/contracts";
import { notConnected, toBusError } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";

/** A message of a stream: its sequence, and when the stream stored it (ms since 1970), because a recreated stream counts from 1 again. */
export type StreamPosition = { readonly sequence: number; readonly at: number };

type Query =
  | { readonly seq: number }
  | { readonly last_by_subj: string }
  /** The client's own type does not know this one, which servers have since 2.9. */
  | { readonly seq: number; readonly next_by_subj: string };
type ClientQuery = Parameters<Connection["jsm"]["streams"]["getMessage"]>[1];

/** Two ways to round the broker's nanoseconds. */
const toleranceMs = 1;

/** When the stream stored a message that it still holds. Asks the leader, because a replica may still hold settled messages. */
const takenAt = async (bus: Bus, stream: StreamName, query: Query): Promise<Date | undefined> => {
  const { connected, jsm } = connectionOf(bus);
  if (!connected) throw notConnected();
  const found = await jsm.streams.getMessage(stream, query as ClientQuery).catch((error: unknown) => {
    throw toBusError(error);
  });
  return found?.time;
};

/**
 * Whether a durable may still have to settle this message. While it may, no other process should do its work. Throws HeraldError
 * bus-unavailable, also while the stream is missing.
 */
export const isUnsettled = async (
  bus: Bus,
  durable: DurableName,
  { sequence, at }: StreamPosition,
): Promise<boolean> => {
  const { stream } = durables[durable];
  if (sequence < 1) return false;
  const taken = await takenAt(bus, stream, { seq: sequence });
  if (taken === undefined || Math.abs(taken.getTime() - at) > toleranceMs) return false;
  if (streams[stream].retention === "workqueue") return true;
  // Such a stream keeps settled messages.
  const { ack_floor } = await connectionOf(bus)
    .jsm.consumers.info(stream, durable)
    .catch((error: unknown) => {
      throw toBusError(error);
    });
  return sequence > ack_floor.stream_seq;
};

/** When a stream stored its oldest message of a subject; undefined when it holds none. Throws as {@link isUnsettled}. */
export const oldestMessageTime = (bus: Bus, stream: StreamName, subject: string): Promise<Date | undefined> =>
  takenAt(bus, stream, { seq: 1, next_by_subj: subject });

/** Whether a stream holds a message on a subject, or on one that matches a filter. Throws as {@link isUnsettled}. */
export const hasMessages = async (bus: Bus, stream: StreamName, filter: string): Promise<boolean> =>
  (await takenAt(bus, stream, { last_by_subj: filter })) !== undefined;
