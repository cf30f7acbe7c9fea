import {
  type AppendRecipients,
  type LineError,
  lineLimits,
  type NotificationId,
  type PageOf,
  type PageRequest,
  type ProjectId,
  type RecipientLine,
  readRecipientLines,
  type SendV1,
} from "@herald/contracts";
import {
  deadlineOptions,
  decodeAfter,
  ensureIndexes,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexNames,
  insertMissing,
  mapPage,
  pageByKey,
  pageOfRows,
  paginationOf,
  removeFirst,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Erased, eraseLines } from "../domain/erase-targets.ts";

/** A chunk of the recipients of a notification, which registry expands in one page or several. */
type RecipientsDocument = {
  /** `<notification>/<chunk>`, padded, so that ids are sorted by chunk. */
  _id: string;
  projectId: ProjectId;
  notificationId: NotificationId;
  /** The last line of the chunk. */
  lastLine: number;
  /** The recipients as JSON, until every device has its result; callers choose the names of the values. */
  content?: string;
  /** Their keys as JSON. */
  keys?: string;
  /** The last chunk of the notification. `closed`: it ended before all lines were stored. */
  last?: true;
  closed?: true;
  /** Sums over this chunk and those before it, so that progress reads two chunks of a thousand. */
  recipients: number;
  refused: number;
  duplicates: number;
  errorsBefore: number;
  /** Absent until the chunk is expanded, as `unmatched` is. Chunks are expanded in order. */
  unmatchedBefore?: number;
  /** Errors of this chunk's lines that are kept. */
  errors: LineError[];
  /** Lines without an active device. */
  unmatched?: number[];
  /** It has errors or lines without a device. */
  faulty?: true;
  at: Date;
};

/** A chunk without what its lines are. */
const sums = {
  ...{ lastLine: 1, last: 1, closed: 1, at: 1 },
  ...{ recipients: 1, refused: 1, duplicates: 1, errorsBefore: 1, unmatchedBefore: 1 },
} as const;
type Sums = Pick<RecipientsDocument, "_id" | keyof typeof sums>;
/** The last chunk that is stored, and its number. */
type Latest = Sums & { readonly chunk: number };

const indexes = {
  list: { fields: { projectId: 1, notificationId: 1, _id: 1 }, purpose: "list" },
  /** Chunks with rows of the list of errors. */
  faults: { fields: { projectId: 1, notificationId: 1, _id: 1 }, purpose: "faults", partial: having("faulty") },
  /** For the erasure of a user, which reads all values that are still kept. */
  values: { fields: { projectId: 1, _id: 1 }, purpose: "erase", partial: having("content") },
} as const satisfies Record<string, IndexSpec>;

const hints = indexNames(indexes);

const chunkDigits = 6;
const idOf = (notificationId: NotificationId, chunk: number): string =>
  `${notificationId}/${String(chunk).padStart(chunkDigits, "0")}`;

/** A chunk has up to 2,000 errors. */
const faultyAtATime = 3;

const unmatchedError = (line: number): LineError => ({
  line,
  field: "target",
  reason: "has no active device",
  code: "unmatched",
});

const lineDigits = 9;
/** In the order of lines. */
const keyOf = ({ line, field }: LineError): string => `${String(line).padStart(lineDigits, "0")}/${field}`;

type Faults = { readonly errors?: readonly LineError[]; readonly unmatched?: readonly number[] };
/** Errors of lines and lines without a device. */
const faultsOf = ({ errors = [], unmatched = [] }: Faults) =>
  [...errors, ...unmatched.map(unmatchedError)]
    .map((error) => ({ error, key: keyOf(error) }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));

/** The list of errors of a small send, which has no chunks. */
export const errorsOfSmall = (unmatched: readonly number[], request: PageRequest): PageOf<LineError> =>
  mapPage(pageOfRows(faultsOf({ unmatched }), { request, key: ({ key }) => key }), ({ error }) => error);

/** How many rows of the list of errors a chunk and those before it have. `unmatched`: those of all chunks. */
const faultsUpTo = ({ errorsBefore, unmatchedBefore }: Sums, unmatched: number): number =>
  Math.min(errorsBefore, lineLimits.errors) + (unmatchedBefore ?? unmatched);

type NewChunk = Omit<AppendRecipients, "kind" | "firstLine">;
/** What a chunk without recipients has. */
const nothing = { lines: "[]", keys: "[]", recipients: 0, refused: 0, duplicates: 0, errors: [], last: false };

/** The document of the chunk that follows `before`. Errors beyond the limit of a list are counted and left out. */
const chunkAfter = (before: Latest | undefined, added: NewChunk, at: Date): RecipientsDocument => {
  const { projectId, notificationId, lastLine, lines, keys, errors, last } = added;
  const { chunk = -1, recipients = 0, refused = 0, duplicates = 0, errorsBefore = 0 } = before ?? {};
  const kept = errors.slice(0, Math.max(0, lineLimits.errors - errorsBefore));
  return {
    ...{ _id: idOf(notificationId, chunk + 1), projectId, notificationId, lastLine, content: lines, keys },
    recipients: recipients + added.recipients,
    refused: refused + added.refused,
    duplicates: duplicates + added.duplicates,
    ...{ errors: kept, errorsBefore: errorsBefore + errors.length },
    ...(kept.length > 0 && { faulty: true as const }),
    ...(last && { last: true as const }),
    at,
  };
};

/** A chunk has at most 384 KiB. */
const erasedAtATime = 20;

const keysOf = (lines: readonly RecipientLine[]): string => JSON.stringify(lines.map(({ key }) => key));
const linesOf = ({ content }: Pick<RecipientsDocument, "content">): RecipientLine[] =>
  content === undefined ? [] : readRecipientLines(content);

/** The recipients of notifications and their values, from the request until every device has its result. */
export const createRecipientStore = (db: Db) => {
  const chunks: Collection<RecipientsDocument> = db.collection("recipients");

  const latest = async (projectId: ProjectId, notificationId: NotificationId): Promise<Latest | undefined> => {
    const options = { hint: hints.list, sort: { _id: -1 }, limit: 1, projection: sums } as const;
    const [found] = await findSome(chunks, { projectId, notificationId }, options);
    return found && { ...found, chunk: Number(found._id.slice(-chunkDigits)) };
  };

  const sumsAt = (projectId: ProjectId, notificationId: NotificationId, chunk: number): Promise<Sums | null> =>
    chunks.findOne({ _id: idOf(notificationId, chunk), projectId }, { projection: sums });

  const progress = async (projectId: ProjectId, notificationId: NotificationId, pages: number) => {
    const [last, expanded] = await Promise.all([
      latest(projectId, notificationId),
      pages === 0 ? undefined : sumsAt(projectId, notificationId, pages - 1),
    ]);
    return { last, processed: expanded?.recipients ?? 0, unmatched: expanded?.unmatchedBefore ?? 0 };
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(chunks, Object.values(indexes)),

    /** Stores the recipients of a send, if it has any. A repeat changes nothing. */
    insert: async ({ projectId, notificationId, recipients = [] }: SendV1, at: Date): Promise<void> => {
      if (recipients.length === 0) return;
      let before: Latest | undefined;
      const documents = recipients.map((lines, chunk) => {
        const last = chunk === recipients.length - 1;
        const content = {
          lines: JSON.stringify(lines),
          keys: keysOf(lines),
          lastLine: lines.at(-1)?.n ?? 0,
          recipients: lines.length,
          last,
        };
        const document = chunkAfter(before, { ...nothing, ...content, projectId, notificationId }, at);
        before = { ...document, chunk };
        return document;
      });
      await insertMissing(chunks, documents);
    },

    latest,

    /** Stores the chunk after `before`. False when another one is stored in its place. */
    append: (chunk: AppendRecipients, before: Latest | undefined, at: Date): Promise<boolean> =>
      insertMissing(chunks, [chunkAfter(before, chunk, at)]),

    /** Ends the list before all its lines are stored: no chunk can follow. Repeatable. */
    close: async (projectId: ProjectId, notificationId: NotificationId, chunk: number, at: Date): Promise<void> => {
      const before = await latest(projectId, notificationId);
      const end = { ...nothing, projectId, notificationId, lastLine: before?.lastLine ?? 0, last: true };
      const document = { ...chunkAfter(before, end, at), _id: idOf(notificationId, chunk), closed: true as const };
      await insertMissing(chunks, [document]);
    },

    /** The keys of a chunk, none if they were removed. Undefined: it is not stored. */
    read: async (projectId: ProjectId, notificationId: NotificationId, chunk: number) => {
      const projection = { keys: 1, last: 1 };
      const found = await chunks.findOne({ _id: idOf(notificationId, chunk), projectId }, { projection });
      return found ? { keys: found.keys ?? "[]", last: found.last === true } : undefined;
    },

    /** The recipients of a chunk as JSON; none if they were removed. */
    lines: async (projectId: ProjectId, notificationId: NotificationId, chunk: number): Promise<string> => {
      const projection = { content: 1 };
      return (await chunks.findOne({ _id: idOf(notificationId, chunk), projectId }, { projection }))?.content ?? "[]";
    },

    /** Records that the chunk was expanded. `unmatched`: positions of its recipients without an active device. Repeatable. */
    record: async (
      projectId: ProjectId,
      notificationId: NotificationId,
      chunk: number,
      unmatched: readonly number[],
    ): Promise<void> => {
      const _id = idOf(notificationId, chunk);
      const projection = { content: 1 };
      const found = unmatched.length === 0 ? null : await chunks.findOne({ _id, projectId }, { projection });
      const lines = found ? linesOf(found) : [];
      const numbers = unmatched.flatMap((position) => lines[position]?.n ?? []);
      const before = chunk === 0 ? undefined : await sumsAt(projectId, notificationId, chunk - 1);
      const change = {
        unmatched: numbers,
        unmatchedBefore: (before?.unmatchedBefore ?? 0) + numbers.length,
        ...(numbers.length > 0 && { faulty: true as const }),
      };
      await chunks.updateOne({ _id, projectId, unmatched: { $exists: false } }, { $set: change });
    },

    /** The last chunk, and how many recipients of the first `pages` chunks, which are expanded, were looked up and have no device. */
    progress,

    /**
     * A page of the errors of lines and the lines without a device, by line. Reads the chunks of the page; for a numbered page also some
     * sums, to find the first of them. `pages`: as of `progress`. Ends with the signal.
     */
    errors: async (
      { projectId, notificationId }: Pick<RecipientsDocument, "projectId" | "notificationId">,
      request: PageRequest,
      { pages, signal }: { readonly pages: number; readonly signal: AbortSignal },
    ): Promise<PageOf<LineError>> => {
      const { perPage } = request;
      /** Up to `count` rows behind the key, from a chunk on. */
      const read = async (first: number, count: number, behind = "") => {
        const filter = {
          projectId,
          notificationId,
          faulty: { $exists: true },
          _id: { $gte: idOf(notificationId, first) },
        };
        const options = { hint: hints.faults, projection: { errors: 1, unmatched: 1 }, ...deadlineOptions() } as const;
        const rows: { readonly error: LineError; readonly key: string }[] = [];
        for await (const chunk of chunks.find(filter, options).sort({ _id: 1 }).batchSize(faultyAtATime)) {
          signal.throwIfAborted();
          const place = chunk._id.slice(-chunkDigits);
          const all = faultsOf(chunk).map(({ error, key }) => ({ error, key: `${place}/${key}` }));
          rows.push(...all.filter(({ key }) => key > behind));
          if (rows.length >= count) break;
        }
        return rows;
      };
      if (request.by === "key") {
        const after = decodeAfter(request.after);
        // One more row than requested shows whether there is a next page.
        const rows = await read(Number(after?.slice(0, chunkDigits) ?? 0), perPage + 1, after);
        return mapPage(
          pageByKey(rows, perPage, ({ key }) => key),
          ({ error }) => error,
        );
      }
      const { page } = request;
      const skip = (page - 1) * perPage;
      const { last, unmatched } = await progress(projectId, notificationId, pages);
      const count = last ? faultsUpTo(last, unmatched) : 0;
      if (!last || skip >= count) return { data: [], pagination: paginationOf({ count, page, perPage }, 0) };
      let [first, end, before] = [0, last.chunk, 0];
      while (first < end) {
        signal.throwIfAborted();
        const middle = Math.floor((first + end) / 2);
        const found = await sumsAt(projectId, notificationId, middle);
        const upTo = found ? faultsUpTo(found, unmatched) : 0;
        if (upTo > skip) end = middle;
        else [first, before] = [middle + 1, upTo];
      }
      const from = skip - before;
      const data = (await read(first, from + perPage)).slice(from, from + perPage).map(({ error }) => error);
      return { data, pagination: paginationOf({ count, page, perPage }, data.length) };
    },

    removeValues: async (projectId: ProjectId, notificationId: NotificationId): Promise<void> => {
      await chunks.updateMany(
        { projectId, notificationId },
        { $unset: { content: "", keys: "" } },
        { hint: hints.list },
      );
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
          await chunks.updateOne(
            { _id, projectId, content },
            { $set: { content: JSON.stringify(kept), keys: keysOf(kept) } },
          );
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

export type RecipientStore = ReturnType<typeof createRecipientStore>;
