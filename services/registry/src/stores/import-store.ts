import {
  type ImportChunkV1,
  type ImportFormat,
  type ImportId,
  importLimits,
  type LineError,
  lineLimits,
  type PageOf,
  type PageRequest,
  type ProjectId,
  unsupportedPlatform,
} from "@herald/contracts";
import {
  byIndex,
  type Counts,
  findPage,
  guardStore,
  having,
  type IndexSpec,
  indexName,
  insertMissing,
  projectRows,
  type RemovedBatch,
  removeOldest,
} from "@herald/mongo";
import type { Db, Document } from "mongodb";

export type ImportDocument = {
  readonly _id: ImportId;
  readonly projectId: ProjectId;
  readonly format: ImportFormat;
  readonly dryRun: boolean;
  readonly at: Date;
  /** When it began; absent once its last chunk is applied. */
  readonly unfinishedSince?: Date;
};

const lineCounts = ["created", "updated", "unchanged", "refused", "unsupported"] as const;
const givenCounts = ["users", "timeZones", "locales", "times"] as const;

/** How many lines gave their device a user, a time zone, a locale and a time of its last use. */
export type GivenCounts = Readonly<Record<(typeof givenCounts)[number], number>>;

/** What the lines of a chunk or an import say about a field: see `UnusedField` and `RenamedField`. */
export type CountedNote = {
  readonly kind: "unknown" | "invalid" | "renamed";
  readonly field: string;
  readonly name?: string;
  readonly lines: number;
};

/** What a chunk counts: lines of each result, and what they had. */
export type ChunkCounts = Readonly<Record<(typeof lineCounts)[number], number>> &
  GivenCounts & { readonly notes: readonly CountedNote[] };

/** A chunk that has been applied. `_id`: the import and the chunk's first line, so that the chunk counts once. */
type ChunkDocument = ChunkCounts & {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly importId: ImportId;
  readonly lines: number;
  readonly lastLine: number;
  /** The last line of the file; absent in all but its last chunk. */
  readonly end?: number;
  readonly errors: number;
  readonly at: Date;
};

type ErrorDocument = LineError & {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly importId: ImportId;
  readonly at: Date;
};

/** The sums over the applied chunks of an import. `lastAt`: when the last of them was applied. */
type Applied = Omit<ChunkDocument, "_id" | "projectId" | "importId" | "at" | "notes"> & { readonly lastAt?: Date };

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  age: { fields: { at: 1 }, purpose: "retention" },
} as const satisfies Record<string, IndexSpec>;
const unfinished = {
  fields: { projectId: 1, unfinishedSince: 1 },
  purpose: "unfinished",
  partial: having("unfinishedSince"),
} as const satisfies IndexSpec;
const ofImport = {
  list: { fields: { projectId: 1, importId: 1, _id: 1 }, purpose: "list" },
  age: indexes.age,
} as const satisfies Record<string, IndexSpec>;

/** A chunk has up to 5,000 errors. */
const errorsAtATime = 500;

const keyOf = (importId: ImportId, line: number): string => `${importId}/${String(line).padStart(9, "0")}`;

/** The fields of a chunk that are summed for its import. */
const summed = [...lineCounts, ...givenCounts, "lines", "errors"] as const;

export const createImportStore = (db: Db, counts: Counts) => {
  const imports = db.collection<ImportDocument>("imports");
  const chunks = db.collection<ChunkDocument>("importChunks");
  const errors = db.collection<ErrorDocument>("importErrors");

  const all = [
    projectRows(imports, { ...indexes, unfinished }, indexes.list),
    projectRows(chunks, ofImport, ofImport.list),
    projectRows(errors, ofImport, ofImport.list),
  ];

  return guardStore({
    ensureIndexes: async () => {
      for (const rows of all) await rows.ensureIndexes();
    },

    /** A repeat changes nothing. */
    create: async (document: ImportDocument): Promise<void> => {
      await insertMissing(imports, [{ ...document, unfinishedSince: document.at }]);
    },

    /** How many of the project's imports began after `since` and are not finished; at most `limit`. */
    countUnfinished: (projectId: ProjectId, since: Date, limit: number): Promise<number> =>
      imports.countDocuments({ projectId, unfinishedSince: { $gt: since } }, { hint: indexName(unfinished), limit }),

    find: async (projectId: ProjectId, importId: ImportId): Promise<ImportDocument | undefined> =>
      (await imports.findOne({ projectId, _id: importId })) ?? undefined,

    list: (projectId: ProjectId, request: PageRequest): Promise<PageOf<ImportDocument>> =>
      findPage(imports, { filter: { projectId }, hint: indexName(indexes.list), request, counts }),

    /** Whether the chunk has been applied and counted. */
    hasChunk: async ({ projectId, importId, firstLine }: ImportChunkV1): Promise<boolean> =>
      (await chunks.findOne({ _id: keyOf(importId, firstLine), projectId }, { projection: { _id: 1 } })) !== null,

    /** Counts a chunk, once, after its devices are written. Errors beyond the limit of an import are counted and left out. */
    addChunk: async (chunk: ImportChunkV1, found: ChunkCounts, problems: readonly LineError[], at: Date) => {
      const { projectId, importId, firstLine, lines, last } = chunk;
      const lastLine = firstLine + lines - 1;
      if (problems.length > 0) {
        const kept = await errors.countDocuments(
          { projectId, importId },
          { hint: indexName(ofImport.list), limit: lineLimits.errors },
        );
        // A file may have more addresses of email than devices; its other errors must have room.
        let room = Math.max(0, importLimits.unsupportedErrors - kept);
        // Numbered before any is left out: a repeat, which finds more kept, writes the same ids.
        const rows = problems
          .map((problem, index) => ({
            ...problem,
            _id: `${keyOf(importId, problem.line)}/${String(index).padStart(4, "0")}`,
            projectId,
            importId,
            at,
          }))
          .filter(({ code }) => code !== unsupportedPlatform || room-- > 0)
          .slice(0, lineLimits.errors - kept);
        // In parts: the database driver serialises the rows of one insert without letting other work run.
        for (let from = 0; from < rows.length; from += errorsAtATime)
          await insertMissing(errors, rows.slice(from, from + errorsAtATime));
      }
      // Before the chunk, because a chunk that is stored is not applied again.
      if (last) await imports.updateOne({ projectId, _id: importId }, { $unset: { unfinishedSince: "" } });
      const _id = keyOf(importId, firstLine);
      const row = { _id, ...found, projectId, importId, lines, lastLine, errors: problems.length, at };
      await insertMissing(chunks, [{ ...row, ...(last && { end: lastLine }) }]);
    },

    applied: async (projectId: ProjectId, importId: ImportId): Promise<Applied> => {
      const Group = {
        _id: null,
        ...Object.fromEntries(summed.map((field) => [field, { $sum: `$${field}` }])),
        lastLine: { $max: "$lastLine" },
        end: { $max: "$end" },
        lastAt: { $max: "$at" },
      };
      const [row] = await chunks
        .aggregate<Document>([{ $match: { projectId, importId } }, { $group: Group }], {
          hint: indexName(ofImport.list),
        })
        .toArray();
      const none = Object.fromEntries([...summed, "lastLine"].map((field) => [field, 0]));
      return { ...none, ...row, end: row?.end ?? undefined } as Applied;
    },

    /** The notes of all chunks, those of the most lines first. */
    notes: async (projectId: ProjectId, importId: ImportId): Promise<CountedNote[]> => {
      const Group = {
        _id: { kind: "$notes.kind", field: "$notes.field", name: "$notes.name" },
        lines: { $sum: "$notes.lines" },
      };
      const rows = await chunks
        .aggregate<Document>(
          [
            { $match: { projectId, importId } },
            { $unwind: "$notes" },
            { $group: Group },
            { $sort: { lines: -1, "_id.field": 1, "_id.name": 1 } },
            { $limit: importLimits.reportedFields },
          ],
          { hint: indexName(ofImport.list) },
        )
        .toArray();
      return rows.map(({ _id, lines }) => ({ ..._id, lines }) as CountedNote);
    },

    countErrors: (projectId: ProjectId, importId: ImportId): Promise<number> =>
      errors.countDocuments({ projectId, importId }, { hint: indexName(ofImport.list) }),

    listErrors: (projectId: ProjectId, importId: ImportId, request: PageRequest): Promise<PageOf<ErrorDocument>> =>
      findPage(errors, { filter: { projectId, importId }, hint: indexName(ofImport.list), request, counts }),

    /** Removes a batch of imports, chunks and errors that are older than `before`. */
    removeOld: async (before: Date): Promise<RemovedBatch> => {
      const old = { at: { $lt: before } };
      const batches = await Promise.all([
        removeOldest(imports, old, byIndex(indexes.age)),
        removeOldest(chunks, old, byIndex(ofImport.age)),
        removeOldest(errors, old, byIndex(ofImport.age)),
      ]);
      return {
        removed: batches.reduce((sum, { removed }) => sum + removed, 0),
        more: batches.some(({ more }) => more),
      };
    },

    /** Removes up to `limit` rows of a deleted project from each collection. Resolves to how many. */
    removePage: async (projectId: ProjectId, limit: number): Promise<number> => {
      const removed = await Promise.all(all.map((rows) => rows.removePage(projectId, limit)));
      return removed.reduce((sum, count) => sum + count, 0);
    },
  });
};
