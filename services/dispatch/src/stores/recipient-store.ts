import {
  type AppendRecipients,
  type NotificationId,
  type ProjectId,
  type RecipientError,
  type RecipientLine,
  readRecipientLines,
  recipientLimits,
  type SendV1,
} from "@herald/contracts";
import {
  ensureIndexes,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexNames,
  insertMissing,
  removeFirst,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Erased, eraseLines } from "../domain/erase-targets.ts";

/** A chunk of the recipients of a notification, which registry expands as one page. */
type RecipientsDocument = {
  /** `<notification>/<page>`, padded, so that ids are sorted by page. */
  _id: string;
  projectId: ProjectId;
  notificationId: NotificationId;
  /** The last line of the chunk. */
  lastLine: number;
  /** How many recipients it has. */
  lines: number;
  /** The recipients as JSON, until every device has its result; callers choose the names of the values. */
  content?: string;
  /** The last chunk of the notification. `closed`: it ended before all lines were stored. */
  last?: true;
  closed?: true;
  /** Sums over this chunk and those before it. */
  refused: number;
  duplicates: number;
  /** Errors of this chunk's lines, and how many there are up to its end. */
  errors: RecipientError[];
  errorsBefore: number;
  /** Lines without an active device. Absent until the chunk is expanded. */
  unmatched?: number[];
  at: Date;
};

const indexes = {
  list: { fields: { projectId: 1, notificationId: 1, _id: 1 }, purpose: "list" },
  /** For the erasure of a user, which reads all values that are still kept. */
  values: { fields: { projectId: 1, _id: 1 }, purpose: "erase", partial: having("content") },
} as const satisfies Record<string, IndexSpec>;

const hints = indexNames(indexes);

const pageDigits = 6;
const idOf = (notificationId: NotificationId, page: number): string =>
  `${notificationId}/${String(page).padStart(pageDigits, "0")}`;

/** More than the largest list has. */
const maxChunks = 100_000;

/** A chunk has at most 384 KiB. */
const erasedAtATime = 20;

const linesOf = ({ content }: Pick<RecipientsDocument, "content">): RecipientLine[] =>
  content === undefined ? [] : readRecipientLines(content);

/** The recipients of notifications and their values, from the request until every device has its result. */
export const createRecipientStore = (db: Db) => {
  const chunks: Collection<RecipientsDocument> = db.collection("recipients");

  return guardStore({
    ensureIndexes: () => ensureIndexes(chunks, Object.values(indexes)),

    /** Stores the recipients of a send, if it has any. A repeat changes nothing. */
    insert: async ({ projectId, notificationId, recipients = [] }: SendV1, at: Date): Promise<void> => {
      if (recipients.length === 0) return;
      const documents = recipients.map((lines, page): RecipientsDocument => {
        const isLast = page === recipients.length - 1;
        return {
          _id: idOf(notificationId, page),
          projectId,
          notificationId,
          lastLine: lines.at(-1)?.n ?? 0,
          lines: lines.length,
          content: JSON.stringify(lines),
          refused: 0,
          duplicates: 0,
          errors: [],
          errorsBefore: 0,
          ...(isLast && { last: true as const }),
          at,
        };
      });
      await insertMissing(chunks, documents);
    },

    /** The last chunk that is stored, without its lines. */
    latest: async (projectId: ProjectId, notificationId: NotificationId) => {
      const [found] = await findSome(
        chunks,
        { projectId, notificationId },
        { hint: hints.list, sort: { _id: -1 }, limit: 1, projection: { content: 0, errors: 0 } },
      );
      return found && { ...found, page: Number(found._id.slice(-pageDigits)) };
    },

    /** Stores the chunk after `before`. False when another one is stored in its place. */
    append: async (
      { projectId, notificationId, lastLine, lines, recipients, errors, refused, duplicates, last }: AppendRecipients,
      before:
        | (Pick<RecipientsDocument, "refused" | "duplicates" | "errorsBefore"> & { readonly page: number })
        | undefined,
      at: Date,
    ): Promise<boolean> => {
      const page = before === undefined ? 0 : before.page + 1;
      const errorsBefore = (before?.errorsBefore ?? 0) + errors.length;
      const room = Math.max(0, recipientLimits.errors - (before?.errorsBefore ?? 0));
      return insertMissing(chunks, [
        {
          _id: idOf(notificationId, page),
          projectId,
          notificationId,
          lastLine,
          lines: recipients,
          content: lines,
          refused: (before?.refused ?? 0) + refused,
          duplicates: (before?.duplicates ?? 0) + duplicates,
          errors: errors.slice(0, room),
          errorsBefore,
          ...(last && { last: true as const }),
          at,
        },
      ]);
    },

    /** Ends the list before all its lines are stored: no chunk can follow. Repeatable. */
    close: async (projectId: ProjectId, notificationId: NotificationId, page: number, at: Date): Promise<void> => {
      const [before] = await findSome(
        chunks,
        { projectId, notificationId },
        { hint: hints.list, sort: { _id: -1 }, limit: 1, projection: { content: 0, errors: 0 } },
      );
      const { lastLine = 0, refused = 0, duplicates = 0, errorsBefore = 0 } = before ?? {};
      await insertMissing(chunks, [
        {
          ...{
            _id: idOf(notificationId, page),
            projectId,
            notificationId,
            lastLine,
            refused,
            duplicates,
            errorsBefore,
          },
          ...{ lines: 0, content: "[]", errors: [], last: true, closed: true, at },
        },
      ]);
    },

    /** A chunk, without lines if its values were removed. Undefined: it is not stored. */
    read: async (projectId: ProjectId, notificationId: NotificationId, page: number) => {
      const found = await chunks.findOne({ _id: idOf(notificationId, page), projectId });
      return found ? { lines: found.content ?? "[]", last: found.last === true } : undefined;
    },

    /** Records that the chunk was expanded. `unmatched`: positions of its recipients without an active device. Repeatable. */
    record: async (
      projectId: ProjectId,
      notificationId: NotificationId,
      page: number,
      unmatched: readonly number[],
    ): Promise<void> => {
      const _id = idOf(notificationId, page);
      const found = unmatched.length === 0 ? null : await chunks.findOne({ _id, projectId });
      const lines = found ? linesOf(found) : [];
      const numbers = unmatched.flatMap((position) => lines[position]?.n ?? []);
      await chunks.updateOne({ _id, projectId, unmatched: { $exists: false } }, { $set: { unmatched: numbers } });
    },

    /** The chunks of a notification without their values, in order; `errors`: with the errors of their lines. */
    list: (projectId: ProjectId, notificationId: NotificationId, { errors = false } = {}) =>
      findSome(
        chunks,
        { projectId, notificationId },
        {
          hint: hints.list,
          sort: { _id: 1 },
          limit: maxChunks,
          projection: { content: 0, ...(!errors && { errors: 0 }) },
        },
      ),

    removeValues: async (projectId: ProjectId, notificationId: NotificationId): Promise<void> => {
      await chunks.updateMany({ projectId, notificationId }, { $unset: { content: "" } }, { hint: hints.list });
    },

    /** Removes an erased user's values. The lines stay, so that a page that is expanded again is cut in the same way. */
    erase: async (erased: Erased): Promise<void> => {
      const { projectId, at } = erased;
      for (let after = ""; ; ) {
        const filter = { projectId, content: { $exists: true }, _id: { $gt: after } };
        const page = await findSome(chunks, filter, { hint: hints.values, sort: { _id: 1 }, limit: erasedAtATime });
        for (const { _id, content, at: storedAt } of page) {
          after = _id;
          if (content === undefined || storedAt > at) continue;
          const lines = linesOf({ content });
          const kept = eraseLines(lines, erased);
          if (kept.every((line, index) => line === lines[index])) continue;
          await chunks.updateOne({ _id, projectId, content }, { $set: { content: JSON.stringify(kept) } });
        }
        if (page.length < erasedAtATime) return;
      }
    },

    /** Removes up to one batch of chunks of notifications. Resolves to their number; less than a batch: none is left. */
    removeBatch: async (of: readonly { readonly _id: NotificationId; readonly projectId: ProjectId }[]) => {
      const filter = {
        projectId: { $in: [...new Set(of.map(({ projectId }) => projectId))] },
        notificationId: { $in: of.map(({ _id }) => _id) },
      };
      return (await removeFirst(chunks, filter, { hint: hints.list, sort: indexes.list.fields })).length;
    },
  });
};
