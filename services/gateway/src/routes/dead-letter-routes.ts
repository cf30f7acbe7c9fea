import { randomUUID } from "node:crypto";
import { DeadLetter, DeadLetterId, DeadLetterListQuery, pageOf, Replay, ReplayDeadLetters } from "@herald/contracts";
import { z } from "zod";
import { operator, viewer } from "../auth/caller.ts";
import { accepted, ok, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";

export const deadLetterRoutes = [
  defineRoute("listDeadLetters", "get /admin/v1/dead-letters", {
    summary: "List dead letters, oldest first",
    description:
      "Messages that could not be processed, each with its reason. They are kept for 30 days, replayed or not. Their content is not shown.",
    access: viewer,
    query: DeadLetterListQuery,
    responses: { 200: { description: "A page of dead letters", schema: pageOf(DeadLetter) } },
    handle: async ({ deadLetters }, { query }) => {
      const { durable, project_id: projectId } = query;
      const page = pageRequest(projectId === undefined ? query : { ...query, after: query.after ?? "" });
      return pageReply(await deadLetters.list({ ...page, durable, projectId }));
    },
  }),
  defineRoute("getDeadLetter", "get /admin/v1/dead-letters/{id}", {
    summary: "Read a dead letter",
    access: viewer,
    responses: { 200: { description: "The dead letter, without its content", schema: dataOf(DeadLetter) } },
    handle: async ({ deadLetters }, { params }) => ok(await deadLetters.get(params.id)),
  }),
  defineRoute("replayDeadLetters", "post /admin/v1/dead-letters/replay", {
    summary: "Replay up to 100 dead letters",
    description:
      "Replays the named dead letters, or the next 100 of a durable that were never replayed. The response has a result for each; failed ones can be replayed by another request.",
    access: operator,
    body: ReplayDeadLetters,
    responses: {
      200: {
        description: "The result of each, in the order in which they were replayed",
        schema: dataOf(
          z.object({
            replays: z.array(Replay),
            next: DeadLetterId.nullable().meta({
              description: "`after` of the next request; null: there are no more",
            }),
          }),
        ),
      },
    },
    handle: async ({ deadLetters }, { body, idempotent }) =>
      idempotent({
        newId: () => randomUUID(),
        perform: async ({ id: attempt }) =>
          ok(
            "durable" in body
              ? await deadLetters.replayNext(body.durable, body.after ?? "", attempt)
              : await deadLetters.replayMany(body.dead_letters, attempt),
          ),
      }),
  }),
  defineRoute("replayDeadLetter", "post /admin/v1/dead-letters/{id}/replay", {
    summary: "Replay a dead letter",
    description:
      "Publishes the message again, unchanged. If it fails again, it becomes another dead letter. A dead letter can be replayed more than once; the response contains the number of replays. Refused with 409 when a replay would change nothing, because the deliveries of a failed send or batch are final.",
    access: operator,
    responses: { 202: { description: "The message was published again", schema: dataOf(Replay) } },
    errors: ["replay-refused"],
    handle: async ({ deadLetters }, { params, idempotent }) =>
      idempotent({
        newId: () => randomUUID(),
        perform: async ({ id: attempt }) => accepted(await deadLetters.replay(params.id, attempt)),
      }),
  }),
];
