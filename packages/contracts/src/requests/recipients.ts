import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { NotificationId, ProjectId } from "../ids.ts";
import { RecipientLine } from "../recipients.ts";

const page = { projectId: ProjectId, notificationId: NotificationId, page: z.number().int().min(0) };

/**
 * A chunk of recipients, which registry expands. `state`: `waiting` for the chunk to be stored; `ended`: no page of the notification is
 * expanded any more.
 */
export const ReadRecipients = defineRequest(
  "dispatch.recipients.read",
  page,
  z.discriminatedUnion("state", [
    z.object({ state: z.literal("waiting") }),
    z.object({ state: z.literal("ended") }),
    z.object({ state: z.literal("stored"), lines: z.array(RecipientLine), last: z.boolean() }),
  ]),
);

/** The chunk's batches are published. `unmatched`: positions in the chunk of recipients without an active device. */
export const RecordRecipients = defineRequest(
  "dispatch.recipients.record",
  { ...page, unmatched: z.array(z.number().int().min(0)) },
  z.object({}),
);
