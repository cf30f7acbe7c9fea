import { type MsgHdrs, nuid } from "@nats-io/transport-node";
import { notConnected } from "./bus-error.ts";
import type { BusConnection } from "./connect.ts";
import { brokerHeaders, outgoingHeaders } from "./message-format.ts";
import { type Encoded, publishing, requestAck } from "./publish.ts";

/** The broker takes at most 1,000 messages in a batch. */
export const batchLimit = 1000;

/** Publishes messages of one stream as one atomic batch. The label of its metrics and span joins the patterns of its messages. */
export const publishBatch = async (connection: BusConnection, messages: readonly Encoded[]): Promise<void> => {
  const batch = messages.map(({ subject, body, messageId, headers: own, origin }) => ({
    subject,
    body,
    headers: (more: Readonly<Record<string, string>>) =>
      outgoingHeaders({ ...own, [brokerHeaders.messageId]: messageId, ...more }, origin),
  }));
  const patterns = new Set(messages.map(({ pattern }) => pattern));
  await publishing(connection, { pattern: [...patterns].join(" "), origin: {} }, () => requestBatch(connection, batch));
};

/** `headers` builds the message's headers, including the given headers of the batch. */
type BatchMessage = {
  readonly subject: string;
  readonly body: string | Uint8Array;
  readonly headers: (batch: Readonly<Record<string, string>>) => MsgHdrs;
};

/**
 * Sends up to 1,000 messages of one stream as one atomic batch. The broker acks only the last, so a batch costs one round trip.
 * Throws as `requestAck` does.
 */
export const requestBatch = async (
  connection: BusConnection,
  messages: readonly BatchMessage[],
): Promise<{ readonly duplicate?: boolean }> => {
  if (!connection.connected) throw notConnected();
  if (messages.length > batchLimit) throw new RangeError(`a batch holds at most ${batchLimit} messages`);
  const batchId = nuid.next();
  for (const [index, { subject, body, headers }] of messages.entries()) {
    const last = index === messages.length - 1;
    const all = headers({
      [brokerHeaders.batchId]: batchId,
      [brokerHeaders.batchSequence]: String(index + 1),
      ...(last && { [brokerHeaders.batchCommit]: "1" }),
    });
    if (last) return requestAck(connection, subject, body, all);
    connection.nc.publish(subject, body, { headers: all });
  }
  return {};
};
