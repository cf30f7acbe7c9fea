import type { Reply } from "@herald/contracts";
import { headers, type Msg, nuid } from "@nats-io/transport-node";
import { isNoResponders } from "./bus-error.ts";
import type { BusConnection } from "./connect.ts";

/** The number of parts, in the first part. `restHeader` has the subject on which the sender requests the other parts by number. */
const partsHeader = "Herald-Parts";
/** Not the reply subject, because between two accounts the server rewrites a reply subject and allows only one reply to it. */
const restHeader = "Herald-Rest";

/** A hundred of the largest devices are 4 MB. A larger reply would occupy the memory of two services at once. */
const maxReplyBytes = 16 * 1_048_576;
const tooLarge: Reply = {
  error: {
    code: "validation-failed",
    messages: [`per_page: these rows are more than ${maxReplyBytes} bytes: ask for fewer`],
  },
};

/** Sends a reply that is larger than the broker's largest message; validation-failed if it exceeds 16 MiB, as only a list can. */
export const sendParts = (
  connection: BusConnection,
  service: string,
  to: string,
  whole: Buffer,
  partBytes: number,
): void => {
  const { nc } = connection;
  if (whole.length > maxReplyBytes) {
    nc.publish(to, Buffer.from(JSON.stringify(tooLarge)));
    return;
  }
  const parts = Math.ceil(whole.length / partBytes);
  const part = (index: number) => whole.subarray(index * partBytes, (index + 1) * partBytes);
  const asked = new Set<number>();
  const rest = offerRest(connection, service, (msg) => {
    const index = Number(msg.string());
    msg.respond(part(index));
    if (asked.add(index).size === parts - 1) rest.end();
  });
  const head = headers();
  head.set(partsHeader, String(parts));
  head.set(restHeader, rest.subject);
  nc.publish(to, part(0), { headers: head });
};

/** Twice the timeout of a request. */
const restKeptMs = 10_000;

/** A message allows one reply, so the sender requests the rest on `subject`, until `end` is called or `restKeptMs` has passed. */
export const offerRest = ({ nc }: BusConnection, service: string, onRequest: (msg: Msg) => void) => {
  // The service may subscribe to its own subjects, and senders of requests may publish to them.
  const subject = `push.req.v1.${service}.rest.${nuid.next()}`;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const end = () => {
    clearTimeout(timer);
    subscription.unsubscribe();
    resolve();
  };
  const subscription = nc.subscribe(subject, {
    callback: (error, msg) => {
      if (!error) onRequest(msg);
    },
  });
  const timer = setTimeout(end, restKeptMs).unref();
  return { subject, end, ended };
};

/** Other servers of a cluster may learn of the new subscription only after the first part has arrived. */
const maxPartTries = 3;

type RequestPart = (subject: string, body: string) => Promise<Msg>;

const partOf = async (requestPart: RequestPart, subject: string, index: number) => {
  for (let tries = 1; ; tries++) {
    try {
      return (await requestPart(subject, String(index))).data;
    } catch (error) {
      if (tries === maxPartTries || !isNoResponders(error)) throw error;
    }
  }
};

/** Requests the other parts of a reply, if it has any, and returns its JSON. Rejects as `requestPart` does. */
export const readParts = async (first: Msg, requestPart: RequestPart): Promise<Reply> => {
  const parts = Number(first.headers?.get(partsHeader) || 1);
  const rest = first.headers?.get(restHeader);
  if (parts === 1 || !rest) return first.json();
  const others = Array.from({ length: parts - 1 }, (_, index) => partOf(requestPart, rest, index + 1));
  return JSON.parse(Buffer.concat([first.data, ...(await Promise.all(others))]).toString());
};
