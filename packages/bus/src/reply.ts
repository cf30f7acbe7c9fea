import type { Reply } from "@herald/contracts";
import { withTimeout } from "@herald/kit";
import { headers, type Msg, nuid } from "@nats-io/transport-node";
import { z } from "zod";
import { isNoResponders } from "./bus-error.ts";
import type { BusConnection } from "./connect.ts";
import { outgoingHeaders } from "./message-format.ts";
import { requestReply } from "./request.ts";

/** The number of parts, in the first part. `restHeader` has the subject on which the sender requests the other parts by number. */
const partsHeader = "Herald-Parts";
/** Not the reply subject, because between two accounts the server rewrites a reply subject and allows only one reply to it. */
const restHeader = "Herald-Rest";

/** Reserved for the subject and headers of a part. */
const roomBytes = 4_096;
/** A hundred of the largest devices are 4 MB. A larger reply would occupy the memory of two services at once. */
const maxReplyBytes = 16 * 1_048_576;
const tooLarge: Reply = {
  error: {
    code: "validation-failed",
    messages: [`per_page: these rows are more than ${maxReplyBytes} bytes: ask for fewer`],
  },
};

/** Sends a reply, in parts if it exceeds the broker's largest message; validation-failed if it exceeds 16 MiB, as only a list can. */
export const sendReply = (connection: BusConnection, service: string, { reply: to }: Msg, reply: Reply): void => {
  if (to === undefined || to === "") return;
  const { nc } = connection;
  let bytes = Buffer.from(JSON.stringify(reply));
  if (bytes.length > maxReplyBytes) bytes = Buffer.from(JSON.stringify(tooLarge));
  const partBytes = (nc.info?.max_payload ?? 1_048_576) - roomBytes;
  if (bytes.length <= partBytes) {
    nc.publish(to, bytes);
    return;
  }
  const parts = Math.ceil(bytes.length / partBytes);
  const part = (index: number) => bytes.subarray(index * partBytes, (index + 1) * partBytes);
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
const offerRest = ({ nc }: BusConnection, service: string, onRequest: (msg: Msg) => void) => {
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

const requestPart = async (connection: BusConnection, subject: string, index: number, timeout: number) => {
  for (let tries = 1; ; tries++) {
    try {
      return (await requestReply(connection, subject, String(index), outgoingHeaders(), timeout)).data;
    } catch (error) {
      if (tries === maxPartTries || !isNoResponders(error)) throw error;
    }
  }
};

/** Requests the other parts of a reply and returns its JSON. Rejects as `request` does. */
export const readReply = async (connection: BusConnection, first: Msg, timeout: number): Promise<Reply> => {
  const parts = Number(first.headers?.get(partsHeader) || 1);
  const rest = first.headers?.get(restHeader);
  if (parts === 1 || !rest) return first.json();
  const others = Array.from({ length: parts - 1 }, (_, index) => requestPart(connection, rest, index + 1, timeout));
  return JSON.parse(Buffer.concat([first.data, ...(await Promise.all(others))]).toString());
};

/** Marks a message that carries several requests of the same contract. */
export const groupHeader = "Herald-Group";

/** The body of a message with several requests. `budgetMs`: how long the caller waits. */
export const RequestGroup = z.object({
  group: z.array(
    z.object({
      origin: z.object({ requestId: z.string().optional(), traceparent: z.string().optional() }),
      budgetMs: z.number(),
      data: z.unknown(),
    }),
  ),
});
export type GroupedRequest = z.output<typeof RequestGroup>["group"][number];

/** The reply to a group: replies by the index of their request. The sender requests the missing replies on `rest`. */
export type GroupReplies = { readonly replies: readonly (readonly [number, Reply])[]; readonly rest?: string };

/** Requests of a group usually end together. A slow one delays the others no longer than this. */
const groupReplyWaitMs = 20;

/** Replies to a group as its requests end. Resolves when all replies are sent, or when the sender stops requesting them. */
export const replyToGroup = async (
  connection: BusConnection,
  service: string,
  msg: Msg,
  requests: readonly Promise<Reply>[],
): Promise<void> => {
  let done: [number, Reply][] = [];
  let left = requests.length;
  let onDone = () => {};
  const all = Promise.all(
    requests.map(async (request, index) => {
      const reply = await request;
      done.push([index, reply]);
      left--;
      onDone();
    }),
  );

  /** Takes the replies that are ready: all, or the first ones if others take longer than `groupReplyWaitMs`. */
  const take = async (): Promise<GroupReplies["replies"]> => {
    while (done.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      onDone = resolve;
      await promise;
    }
    if (left > 0) await withTimeout(groupReplyWaitMs, all);
    const taken = done;
    done = [];
    return taken;
  };

  const replies = await take();
  if (left === 0) return sendReply(connection, service, msg, { answer: { replies } });
  const rest = offerRest(connection, service, async (next) => {
    const more = await take();
    sendReply(connection, service, next, { answer: { replies: more, ...(left > 0 && { rest: rest.subject }) } });
    if (left === 0) rest.end();
  });
  sendReply(connection, service, msg, { answer: { replies, rest: rest.subject } });
  await rest.ended;
};
