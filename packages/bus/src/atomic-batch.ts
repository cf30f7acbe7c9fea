import { type MsgHdrs, nuid } from "@nats-io/transport-node";
import { notConnected } from "./bus-error.ts";
import type { Connection } from "./connect.ts";
import { brokerHeaders } from "./message-headers.ts";
import { requestAck } from "./stream-request.ts";

/** The broker takes at most 1,000 messages in a batch. */
export const batchLimit = 1000;

/** `headers` builds the message's headers and adds those of the batch. */
export type BatchMessage = {
  readonly subject: string;
  readonly body: string | Uint8Array;
  readonly headers: (batch: Readonly<Record<string, string>>) => MsgHdrs;
};

/**
 * Sends up to 1,000 messages of one stream as one atomic batch: the stream stores all or none. It acks only the last, so a batch costs one
 * round trip. The stream must allow batches. Throws as `requestAck` does.
 */
export const requestBatch = async (
  connection: Connection,
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
