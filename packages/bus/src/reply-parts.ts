import type { Reply } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { headers, type Msg, nuid } from "@nats-io/transport-node";
import { isNoResponders } from "./bus-error.ts";
import type { Connection } from "./connect.ts";
import { outgoingHeaders } from "./message-headers.ts";
import { request } from "./request.ts";

/** How many parts a reply has. It stands on the first part, beside the subject that gives the others by their number. */
const partsHeader = "Herald-Parts";
/** A header, not the reply's own reply subject: between two accounts the server would give that another name, for one use. */
const restHeader = "Herald-Rest";

/** Beside a part: subject and headers. */
const roomBytes = 4_096;
/** A hundred of the largest devices are 4 MB; more is refused rather than held in the memory of two services at once. */
const maxReplyBytes = 16 * 1_048_576;
/** Twice as long as anybody waits for an answer. */
const replyKeptMs = 10_000;

/**
 * Sends a reply, in parts where it is longer than the broker's messages may be.
 * Throws validation-failed when it is longer than 16 MiB: only a list can be.
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
  // Among the service's own subjects, which it may listen on and whoever asks it may publish to.
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

/** Other servers of a cluster hear of a new subscription a moment later than its first message arrives. */
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

/** The JSON of a reply, of which the first part has come. Rejects as `request` does. */
export const readReply = async (connection: Connection, first: Msg, timeout: number): Promise<unknown> => {
  const parts = Number(first.headers?.get(partsHeader) || 1);
  const rest = first.headers?.get(restHeader);
  if (parts === 1 || !rest) return first.json();
  const others = Array.from({ length: parts - 1 }, (_, index) => requestPart(connection, rest, index + 1, timeout));
  return JSON.parse(Buffer.concat([first.data, ...(await Promise.all(others))]).toString());
};
