import type { Reply } from "@herald/contracts";
import { type Msg, nuid } from "@nats-io/transport-node";
import { z } from "zod";
import type { Connection } from "./connect.ts";
import { sendReply } from "./reply-parts.ts";

/** Marks a message that carries several requests of the same contract. */
export const groupHeader = "Herald-Group";

/** Such a message. `budgetMs`: how long the caller waits. */
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

/** Its answer: replies by the index of their request. The sender requests the missing ones on `rest`. */
export type GroupReplies = { readonly replies: readonly (readonly [number, Reply])[]; readonly rest?: string };

/** Requests of a group usually end together. A slow one delays the others no longer than this. */
const groupReplyWaitMs = 20;
/** Twice the timeout of a request. */
const replyKeptMs = 10_000;

/** Replies to a group as its requests end. Resolves when all replies are sent, or when the sender stops requesting them. */
export const replyToGroup = async (
  connection: Connection,
  service: string,
  msg: Msg,
  requests: readonly Promise<Reply>[],
): Promise<void> => {
  let done: [number, Reply][] = [];
  let left = requests.length;
  let onDone = () => {};
  const settled = requests.map(async (request, index) => {
    const reply = await request;
    done.push([index, reply]);
    left--;
    onDone();
  });
  const all = Promise.all(settled);

  /** The replies that are ready: all, or those that would wait too long for the others. */
  const take = async (): Promise<GroupReplies["replies"]> => {
    while (done.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      onDone = resolve;
      await promise;
    }
    if (left > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, groupReplyWaitMs);
      await Promise.race([all, promise]);
      clearTimeout(timer);
    }
    const taken = done;
    done = [];
    return taken;
  };

  const replies = await take();
  if (left === 0) return sendReply(connection, service, msg, { answer: { replies } });
  // A message allows one reply. The service may subscribe to its own subjects, and senders of requests may publish to them.
  const rest = `push.req.v1.${service}.rest.${nuid.next()}`;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const replyMore = async (next: Msg): Promise<void> => {
    const more = await take();
    sendReply(connection, service, next, { answer: { replies: more, ...(left > 0 && { rest }) } });
    if (left === 0) end();
  };
  const subscription = connection.nc.subscribe(rest, {
    callback: (error, next) => {
      if (!error) void replyMore(next);
    },
  });
  const timer = setTimeout(end, replyKeptMs);
  sendReply(connection, service, msg, { answer: { replies, rest } });
  await ended;
  clearTimeout(timer);
  subscription.unsubscribe();
};
