import type { Reply } from "@herald/contracts";
import { withTimeout } from "@herald/kit";
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import type { BusConnection } from "./connect.ts";
import { offerRest } from "./reply-parts.ts";

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

type SendReply = (connection: BusConnection, service: string, to: Msg, reply: Reply) => void;

/** Replies to a group as its requests end. Resolves when all replies are sent, or when the sender stops requesting them. */
export const replyToGroup = async (
  connection: BusConnection,
  service: string,
  msg: Msg,
  requests: readonly Promise<Reply>[],
  sendReply: SendReply,
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
