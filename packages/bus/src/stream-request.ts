import { setTimeout as sleep } from "node:timers/promises";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { isNoResponders, toBusError } from "./bus-error.ts";
import type { Connection } from "./connect.ts";
import { request } from "./request.ts";

/** A stream answers in milliseconds; a caller must know within three seconds that the bus is unavailable. */
export const publishTimeoutMs = 2_500;

/** A stream of three replicas that changes its leader takes nothing for some 100 ms. Nothing was stored, so asking again repeats nothing. */
const electionRetryMs = [50, 150, 300];

type StreamAck = { readonly seq: number; readonly duplicate?: boolean; readonly count?: number };
type StreamReply = StreamAck | { readonly error: { code: number; description: string; err_code: number } };

/** Sends one message to a stream and resolves with the stream's ack. Throws bus-unavailable or queue-full, or what else the broker says. */
export const requestAck = async (
  connection: Connection,
  subject: string,
  payload: Uint8Array | string,
  headers?: MsgHdrs,
  timeout = publishTimeoutMs,
): Promise<StreamAck> => {
  for (let tries = 0; ; tries++) {
    try {
      const reply: StreamReply = (await request(connection, subject, payload, headers, timeout)).json();
      if ("error" in reply) throw new JetStreamApiError(reply.error);
      return reply;
    } catch (error) {
      const delay = electionRetryMs[tries];
      if (delay === undefined || !isNoResponders(error)) throw toBusError(error);
      await sleep(delay);
    }
  }
};
