import type { Reply } from "@herald/contracts";
import { type Msg, nuid } from "@nats-io/transport-node";
import { z } from "zod";
import type { Connection } from "./connect.ts";
import { sendReply } from "./reply-parts.ts";

/** Marks a message that carries several requests of the same contract. */
export const groupHeader = "Herald-Group";

/** Such a message. `budgetMs`: how long the caller of a request waits. */
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

/** Its answer: requests by their place in the group, each with its reply; those that are missing are asked for on `rest`. */
export type GroupReplies = { readonly replies: readonly (readonly [number, Reply])[]; readonly rest?: string };

/** Those of one group are mostly done together, being written together; whoever takes longer holds up the others no longer than this. */
const groupReplyWaitMs = 20;
/** Twice as long as anybody waits for an answer. */
const replyKeptMs = 10_000;

/** Replies to a group as its requests are done. Resolves when all are, and their replies sent or nobody asks for them. */
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

  /** Replies that are done: all, or those that need not wait for the others. */
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
  // A message may be replied to once. Among the service's own subjects, which it may listen on and whoever asks it may publish to.
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
