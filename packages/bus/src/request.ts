import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import { notConnected } from "./bus-error.ts";
import type { Connection } from "./connect.ts";

/**
 * Sends a request and resolves with its reply. Throws bus-unavailable at once when the connection is down, since the client would keep the
 * request and send it after its sender gave up, and as soon as the connection is lost. Rejects with the client's own errors otherwise.
 */
export const request = (
  connection: Connection,
  subject: string,
  body: Uint8Array | string,
  headers: MsgHdrs | undefined,
  timeout: number,
): Promise<Msg> => {
  if (!connection.connected) return Promise.reject(notConnected());
  return new Promise((resolve, reject) => {
    const lost = () => reject(notConnected());
    connection.waiting.add(lost);
    const end = () => connection.waiting.delete(lost);
    connection.nc.request(subject, body, { timeout, ...(headers === undefined ? {} : { headers }) }).then(
      (reply) => {
        end();
        resolve(reply);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
};
