import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { LineError } from "../http/v1/lines.ts";
import { PageQuery } from "../http/v1/pagination.ts";
import { Recipients } from "../http/v1/recipients.ts";
import { NotificationId, ProjectId } from "../ids.ts";
import { PersonalTexts, RecipientKeys, RecipientKind, RecipientLines } from "../recipients.ts";

const notification = { projectId: ProjectId, notificationId: NotificationId };
const chunk = { ...notification, chunk: z.number().int().min(0) };

export const recipientRequests = defineRequests("dispatch.recipients", {
  /**
   * The keys of a chunk of recipients, whose devices registry finds. `state`: `waiting` for the chunk to be stored; `ended`: no chunk of the
   * notification is expanded any more.
   */
  read: oneRequest(
    chunk,
    z.discriminatedUnion("state", [
      z.object({ state: z.literal("waiting") }),
      z.object({ state: z.literal("ended") }),
      z.object({ state: z.literal("stored"), keys: RecipientKeys, last: z.boolean() }),
    ]),
  ),
  /** The chunk's batches are published. `unmatched`: positions in the chunk of recipients without an active device. */
  record: oneRequest({ ...chunk, unmatched: z.array(z.number().int().min(0)) }, z.object({})),
  /**
   * How far its recipients are. `texts`, if they are asked for: how lines of an upload are read; absent: they came with the request. Heavy, as
   * the errors are, because the documents that it reads are large, and clients ask again and again.
   */
  get: oneRequest(
    { ...notification, texts: z.boolean().optional() },
    z.object({ recipients: Recipients, texts: PersonalTexts.pick({ values: true, declared: true }).optional() }),
    () => true,
  ),
  errors: listRequest(notification, LineError, PageQuery, () => true),
  /** Lines of an upload, in order: a chunk follows the lines that are stored. `kind`: of the upload. */
  append: oneRequest(
    {
      ...notification,
      kind: RecipientKind,
      firstLine: z.number().int().min(1),
      lastLine: z.number().int().min(0),
      lines: RecipientLines,
      keys: RecipientKeys,
      /** How many recipients they are. */
      recipients: z.number().int().min(0),
      errors: z.array(LineError),
      refused: z.number().int().min(0),
      duplicates: z.number().int().min(0),
      /** It ends the file. */
      last: z.boolean(),
    },
    z.object({}),
  ),
  /** How many uploads of a project wait for lines; at most `limit`. */
  countUploads: oneRequest(
    { projectId: ProjectId, limit: z.number().int().min(1) },
    z.object({ uploads: z.number().int().min(0) }),
  ),
});

export type AppendRecipients = z.infer<typeof recipientRequests.append.request>;
