import {
  type Author,
  type OutboxEvent,
  type PageOf,
  type PageRequest,
  type ProjectId,
  templateLimits,
} from "@herald/contracts";
import {
  type Counts,
  findPage,
  findSome,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  outboxIndex,
  projectRows,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type EventContext, registryEvent } from "../domain/registry-events.ts";
import { deletedIndex, notDeleted } from "./tombstones.ts";

/** The content is JSON: an app chooses names in it that a database would read otherwise. */
type Content = { readonly content: string; readonly author: Author; readonly at: Date };
export type StoredVersion = Content & { readonly version: number };

export type TemplateId = `${ProjectId}/${string}`;

export type TemplateDocument = {
  readonly _id: TemplateId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly draft: Content;
  /** The last version, which sends use. */
  readonly published?: StoredVersion;
  /** The last hundred, oldest first. */
  readonly versions: readonly StoredVersion[];
  /** Set: sends cannot use it. It stays until the gateways' copy is removed. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

/** A template without its versions, which may have three megabytes. */
export type TemplateRow = Omit<TemplateDocument, "versions">;

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  deleted: deletedIndex,
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

const idOf = (projectId: ProjectId, name: string): TemplateId => `${projectId}/${name}`;

export type TemplateStore = ReturnType<typeof createTemplateStore>;

export const templateCollection = (db: Db): Collection<TemplateDocument> =>
  db.collection<TemplateDocument>("templates");

export const createTemplateStore = (db: Db, counts: Counts) => {
  const templates = templateCollection(db);
  const projection = { versions: 0 } as const;
  const row = (projectId: ProjectId, name: string): Promise<TemplateRow | null> =>
    templates.findOne({ _id: idOf(projectId, name), projectId, ...notDeleted }, { projection });

  return guardStore({
    ...projectRows(templates, indexes, indexes.list),

    row,

    /** With its versions. */
    find: (projectId: ProjectId, name: string): Promise<TemplateDocument | null> =>
      templates.findOne({ _id: idOf(projectId, name), projectId, ...notDeleted }),

    /** Stores a draft. `full`: the project has its maximum of templates; `deleting`: the name is not free yet. */
    putDraft: async (
      projectId: ProjectId,
      name: string,
      draft: Content,
    ): Promise<{ readonly row: TemplateRow; readonly created: boolean } | "full" | "deleting"> => {
      const _id = idOf(projectId, name);
      const change = () =>
        templates.findOneAndUpdate(
          { _id, projectId, ...notDeleted },
          { $set: { draft } },
          { returnDocument: "after", projection },
        );
      const changed = await change();
      if (changed !== null) return { row: changed, created: false };
      const { perProject: limit } = templateLimits;
      if ((await templates.countDocuments({ projectId }, { hint: indexName(indexes.list), limit })) >= limit)
        return "full";
      const created = await insertMissing(templates, [{ _id, projectId, name, draft, versions: [] }]);
      if (created) return { row: { _id, projectId, name, draft }, created };
      // Another request has created it, or it is being deleted.
      const again = await change();
      return again === null ? "deleting" : { row: again, created: false };
    },

    /** Adds a version unless another one was published since `before` was read: then it returns null. */
    publish: async (context: EventContext, before: TemplateDocument, author: Author) => {
      const { _id, projectId, name, draft, published } = before;
      const version = (published?.version ?? 0) + 1;
      const next: StoredVersion = { version, content: draft.content, author, at: context.at };
      const event = registryEvent(context, "TemplatePublishedV1", name, { template: name, version, author });
      return templates.findOneAndUpdate(
        {
          _id,
          projectId,
          ...notDeleted,
          "published.version": published === undefined ? { $exists: false } : published.version,
        },
        {
          $set: { published: next, versions: [...before.versions, next].slice(-templateLimits.versions) },
          $push: { outbox: event },
        },
        { returnDocument: "after", projection },
      );
    },

    list: (projectId: ProjectId, request: PageRequest): Promise<PageOf<TemplateRow>> =>
      findPage(templates, {
        filter: { projectId, ...notDeleted },
        hint: indexName(indexes.list),
        request,
        counts,
        projection,
      }),

    /** The first step of a deletion. */
    markDeleted: (projectId: ProjectId, name: string, deletedAt: Date) =>
      templates.findOneAndUpdate(
        { _id: idOf(projectId, name), projectId, ...notDeleted },
        { $set: { deletedAt } },
        { returnDocument: "after", projection },
      ),

    /** Call it when no gateway can read it any more. */
    remove: async (_id: TemplateId): Promise<void> => {
      await templates.deleteOne({ _id, deletedAt: { $exists: true } });
    },

    /** Also a deleted one. */
    findAny: (_id: TemplateId): Promise<TemplateRow | null> => templates.findOne({ _id }, { projection }),

    /** The next templates by id, also deleted ones. */
    after: (after: TemplateId | undefined, limit: number): Promise<TemplateRow[]> =>
      findSome(templates, after ? { _id: { $gt: after } } : {}, { hint: "_id_", sort: { _id: 1 }, limit, projection }),
  });
};
