import type { Reply } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { headers, type Msg, nuid } from "@nats-io/transport-node";
import { isNoResponders } from "./bus-error.ts";
import type { Connection } from "./connect.ts";
import { outgoingHeaders } from "./message-headers.ts";
import { request } from "./request.ts";

/** The number of parts, on the first part, beside the subject from which the others can be requested by number. */
const partsHeader = "Herald-Parts";
/** A header and not the reply subject: between two accounts the server rewrites reply subjects for one use. */
const restHeader = "Herald-Rest";

/** Beside a part: subject and headers. */
const roomBytes = 4_096;
/** A hundred of the largest devices are 4 MB. More would occupy the memory of two services at once. */
const maxReplyBytes = 16 * 1_048_576;
/** Twice the timeout of a request. */
const replyKeptMs = 10_000;

/**
 * Sends a reply, in parts when it exceeds the broker's largest message.
 * Throws validation-failed when it exceeds 16 MiB: only a list can.
 */
export const sendReply = ({ nc }: Connection, service: string, { reply: to }: Msg, reply: Reply): void => {
  if (to === undefined || to === "") return;
  const bytes = Buffer.from(JSON.stringify(reply));
  const partBytes = (nc.info?.max_payload ?? 1_048_576) - roomBytes;
  if (bytes.length <= partBytes) {
    nc.publish(to, bytes);
    return;
  }
  if (bytes.length > maxReplyBytes) {
    throw new HeraldError(
      "validation-failed",
      `per_page: these rows are more than ${maxReplyBytes} bytes: ask for fewer`,
    );
  }
  const parts = Math.ceil(bytes.length / partBytes);
  const part = (index: number) => bytes.subarray(index * partBytes, (index + 1) * partBytes);
  // The service may subscribe to its own subjects, and senders of requests may publish to them.
  const rest = `push.req.v1.${service}.rest.${nuid.next()}`;
  const asked = new Set<number>();
  const end = () => {
    clearTimeout(timer);
    subscription.unsubscribe();
  };
  const subscription = nc.subscribe(rest, {
    callback: (error, msg) => {
      if (error) return;
      const index = Number(msg.string());
      msg.respond(part(index));
      if (asked.add(index).size === parts - 1) end();
    },
  });
  const timer = setTimeout(end, replyKeptMs).unref();
  const head = headers();
  head.set(partsHeader, String(parts));
  head.set(restHeader, rest);
  nc.publish(to, part(0), { headers: head });
};

/** A new subscription reaches other servers of a cluster after the first part may have arrived. */
const maxPartTries = 3;

const requestPart = async (
  connection: Connection,
  subject: string,
  index: number,
  timeout: number,
): Promise<Uint8Array> => {
  for (let tries = 1; ; tries++) {
    try {
      return (await request(connection, subject, String(index), outgoingHeaders(), timeout)).data;
    } catch (error) {
      if (tries === maxPartTries || !isNoResponders(error)) throw error;
    }
  }
};

/** The JSON of a reply whose first part has arrived. Rejects as `request` does. */
export const readReply = async (connection: Connection, first: Msg, timeout: number): Promise<unknown> => {
  const parts = Number(first.headers?.get(partsHeader) || 1);
  const rest = first.headers?.get(restHeader);
  if (parts === 1 || !rest) return first.json();
  const others = Array.from({ length: parts - 1 }, (_, index) => requestPart(connection, rest, index + 1, timeout));
  return JSON.parse(Buffer.concat([first.data, ...(await Promise.all(others))]).toString());
};
