import { setTimeout as sleep } from "node:timers/promises";
import type { Reply } from "@herald/contracts";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import { isNoResponders, notConnected, toBusError } from "./bus-error.ts";
import type { BusConnection } from "./connect.ts";
import { outgoingHeaders } from "./message-format.ts";
import { readParts, sendParts } from "./reply-parts.ts";

/**
 * Sends a request and resolves with its reply. Rejects with bus-unavailable as soon as the connection is down or lost, because the client
 * would keep the request and send it after its sender has given up. Rejects with the client's own errors otherwise.
 */
export const requestReply = (
  connection: BusConnection,
  subject: string,
  body: Uint8Array | string,
  headers: MsgHdrs,
  timeout: number,
): Promise<Msg> => {
  if (!connection.connected) return Promise.reject(notConnected());
  return new Promise((resolve, reject) => {
    const lost = () => reject(notConnected());
    connection.waiting.add(lost);
    const replied = connection.nc.request(subject, body, { timeout, headers }).then(resolve, reject);
    void replied.finally(() => connection.waiting.delete(lost));
  });
};

/** Reserved for the subject and headers of a reply. */
const roomBytes = 4_096;

/** Sends a reply, in parts if it exceeds the broker's largest message. */
export const sendReply = (connection: BusConnection, service: string, { reply: to }: Msg, reply: Reply): void => {
  if (to === undefined || to === "") return;
  const { nc } = connection;
  const bytes = Buffer.from(JSON.stringify(reply));
  const maxBytes = (nc.info?.max_payload ?? 1_048_576) - roomBytes;
  if (bytes.length <= maxBytes) nc.publish(to, bytes);
  else sendParts(connection, service, to, bytes, maxBytes);
};

/** Sends a request and resolves with its whole reply. Rejects as {@link requestReply} does. */
export const requestAnswer = async (
  connection: BusConnection,
  subject: string,
  body: string,
  headers: MsgHdrs,
  timeout: number,
): Promise<Reply> => {
  const first = await requestReply(connection, subject, body, headers, timeout);
  // Only the first of several parts has headers.
  if (first.headers === undefined) return first.json();
  return readParts(first, (rest, part) => requestReply(connection, rest, part, outgoingHeaders(), timeout));
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
