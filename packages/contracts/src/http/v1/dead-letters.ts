import { z } from "zod";
import { NotificationId, ProjectId } from "../../ids.ts";
import { named } from "../../named.ts";
import { type DurableName, durables } from "../../streams.ts";
import { pageQuery } from "./pagination.ts";

/** The stream's sequence. 15 digits are exact as a JavaScript number, and no stream reaches more. */
export const DeadLetterId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, "must be a dead letter's id, such as 17")
  .meta({ id: "DeadLetterId", description: "The dead letter's sequence in its stream", examples: ["17"] });

/** A message that could not be processed. Its content is not shown: it may contain push tokens and notifications. */
export const DeadLetter = named("DeadLetter", {
  id: DeadLetterId,
  durable: z.string().meta({ description: "Whose handler gave it up" }),
  message: z.string().optional().meta({ description: "Which contract it is of, such as SendV1" }),
  project_id: ProjectId.optional(),
  notification_id: NotificationId.optional(),
  subject: z.string().meta({ description: "Where the message was, and where a replay goes" }),
  reason: z.string(),
  detail: z.string(),
  deliveries: z.number().int().min(0),
  died_at: z.iso.datetime(),
  replayed_at: z.iso.datetime().optional().meta({ description: "The last time" }),
  replays: z.number().int().min(1).optional().meta({ description: "How often it was replayed; absent: never" }),
  /** The dead letter whose replay failed again and became this one. */
  replay_of: DeadLetterId.optional(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;

/** The name of a durable consumer. */
export const Durable = z.enum(Object.keys(durables) as [DurableName, ...DurableName[]]).meta({ id: "Durable" });

/** The query of `GET /admin/v1/dead-letters`. */
export const DeadLetterListQuery = z
  .strictObject({
    ...pageQuery,
    durable: Durable.optional().meta({ description: "Only those of this durable consumer" }),
    project_id: ProjectId.optional().meta({
      description:
        "Only those of this project. Walk by `after` alone: a page may have fewer dead letters than `per_page`, even none, before `next` is null. `page` cannot be combined with it",
    }),
  })
  .refine(({ page, project_id }) => page === undefined || project_id === undefined, {
    path: ["page"],
    error: "cannot be combined with project_id, whose dead letters are not counted; walk by `after`",
  });

/** More replays would take longer than HTTP clients wait. */
const maxReplays = 100;

/** Body of `POST /admin/v1/dead-letters/replay`: ids, or a durable to replay its next dead letters that were never replayed. */
export const ReplayDeadLetters = z
  .union(
    [
      z.strictObject({
        dead_letters: z
          .array(DeadLetterId)
          .min(1, "at least one id is required")
          .max(maxReplays, `must be at most ${maxReplays} ids`),
      }),
      z.strictObject({ durable: Durable, after: z.string().max(200).optional() }),
    ],
    { error: "must be { dead_letters: [id, …] } or { durable, after? }" },
  )
  .meta({ id: "ReplayDeadLetters" });

/** The result of replaying one dead letter. */
export const Replay = named("Replay", {
  id: DeadLetterId,
  status: z.enum(["replayed", "refused", "not-found", "failed"]).meta({
    description:
      "`replayed`: published again, which does not say that it is processed; `refused`: it would change nothing, or may not be published; `failed`: something is unavailable, try again",
  }),
  detail: z.string().meta({ description: "The same in words" }),
  replays: z.number().int().min(1).optional().meta({ description: "How often it was replayed, with this time" }),
  replayed_at: z.iso.datetime().optional(),
});
export type Replay = z.infer<typeof Replay>;
