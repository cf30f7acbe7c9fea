import { randomUUID } from "node:crypto";
import { DeadLetter, DeadLetterId, Durable, pageOf, pageQuery, Replay, ReplayDeadLetters } from "@herald/contracts";
import { z } from "zod";
import { admin } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { accepted, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { deadLetterParam } from "./path-params.ts";

const tag = "Administration";

const listDeadLetters = defineRoute({
  method: "get",
  path: "/admin/v1/dead-letters",
  operationId: "listDeadLetters",
  tag,
  summary: "List dead letters, oldest first",
  description:
    "Messages that could not be processed, each with its reason. They are kept for 30 days, replayed or not. What they say is not shown.",
  access: admin,
  query: z.strictObject({ ...pageQuery, durable: Durable.optional() }),
  responses: { 200: { description: "A page of dead letters", schema: pageOf(DeadLetter) } },
  handle: async ({ deadLetters }, request) => {
    const { durable, ...page } = request.query;
    return pageReply(request, await deadLetters.list({ ...pageRequest(page), durable }));
  },
});

const getDeadLetter = defineRoute({
  method: "get",
  path: "/admin/v1/dead-letters/{id}",
  operationId: "getDeadLetter",
  tag,
  summary: "Read a dead letter",
  access: admin,
  params: { id: deadLetterParam },
  responses: { 200: { description: "The dead letter, without its content", schema: z.object({ data: DeadLetter }) } },
  handle: async ({ deadLetters }, { params }) => ok({ data: await deadLetters.get(params.id) }),
});

const replayDeadLetter = defineRoute({
  method: "post",
  path: "/admin/v1/dead-letters/{id}/replay",
  operationId: "replayDeadLetter",
  tag,
  summary: "Replay a dead letter",
  description:
    "Publishes the message again as it was, for whoever processes such messages now. What dies again becomes another dead letter. It can be replayed more than once, and the answer says how often it was. Refused with 409 where it would change nothing: a send or a batch that was given up has made its devices final.",
  access: admin,
  params: { id: deadLetterParam },
  responses: { 202: { description: "It is published again", schema: z.object({ data: Replay }) } },
  errors: ["replay-refused"],
  handle: async ({ deadLetters }, { params, idempotent }) =>
    idempotent({
      newId: () => randomUUID(),
      perform: async ({ id: attempt }) => accepted({ data: await deadLetters.replay(params.id, attempt) }),
    }),
});

const replayDeadLetters = defineRoute({
  method: "post",
  path: "/admin/v1/dead-letters/replay",
  operationId: "replayDeadLetters",
  tag,
  summary: "Replay up to 100 dead letters",
  description:
    "Those that are named, or the next 100 of a durable without those that were replayed before. Each is answered; what failed can be replayed by another request.",
  access: admin,
  body: ReplayDeadLetters,
  responses: {
    200: {
      description: "What became of each, in the order in which they were replayed",
      schema: z.object({
        data: z.object({
          replays: z.array(Replay),
          next: DeadLetterId.nullable().meta({
            description: "`after` for the next ones of the durable; null: no more",
          }),
        }),
      }),
    },
  },
  handle: async ({ deadLetters }, { body, idempotent }) =>
    idempotent({
      newId: () => randomUUID(),
      perform: async ({ id: attempt }) =>
        ok({
          data:
            "durable" in body
              ? await deadLetters.replayNext(body.durable, body.after ?? "", attempt)
              : await deadLetters.replayMany(body.dead_letters, attempt),
        }),
    }),
});

export const deadLetterRoutes = [listDeadLetters, getDeadLetter, replayDeadLetters, replayDeadLetter];
