import { randomBytes } from "node:crypto";
import {
  type Author,
  type OutboxEvent,
  type PageOf,
  type PageRequest,
  type ProjectId,
  templateLimits,
} from "@herald/contracts";
import {
  beginsWith,
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

/** A content that was written; `digest` is the same for the same content, and `bytes` is its size as JSON. */
type Written = {
  readonly contentId: ContentId;
  readonly digest: string;
  readonly bytes: number;
  readonly author: Author;
  readonly at: Date;
};
export type StoredVersion = Written & { readonly version: number };

export type TemplateId = `${ProjectId}/${string}`;

/** `content/<template>/<random>`: not among the ids of the project's templates, so that no list reads it. */
type ContentId = `content/${TemplateId}/${string}`;

/** A template without its contents, each of which has up to 32 KiB and a document of its own. */
export type TemplateDocument = {
  readonly _id: TemplateId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly draft: Written;
  /** The last version, which sends use. */
  readonly published?: StoredVersion;
  /** The last hundred, oldest first. */
  readonly versions: readonly StoredVersion[];
  /** Set: sends cannot use it. It stays until the gateways' copy is removed. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

/** The content of a draft, and then of the version that it becomes. JSON: an app chooses names in it that a database would read otherwise. */
type ContentDocument = {
  readonly _id: ContentId;
  readonly projectId: ProjectId;
  readonly content: string;
  readonly at: Date;
};

export type TemplateRow = Omit<TemplateDocument, "versions">;

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  deleted: deletedIndex,
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

const idOf = (projectId: ProjectId, name: string): TemplateId => `${projectId}/${name}`;
const contentsOf = (_id: TemplateId) => `content/${_id}/` as const;
/** Behind the ids of contents, before those of projects. */
const beforeTemplates = "contents";

/** A content that no draft and no version names is removed when it is older than this: no write takes as long. */
const writtenWithinMs = 60_000;

export type TemplateStore = ReturnType<typeof createTemplateStore>;

export const templateCollection = (db: Db): Collection<TemplateDocument> =>
  db.collection<TemplateDocument>("templates");

export const createTemplateStore = (db: Db, counts: Counts) => {
  const templates = templateCollection(db);
  const contents = db.collection<ContentDocument>("templates");
  const projection = { versions: 0 } as const;
  const ofProject = (projectId: ProjectId) => ({ projectId, _id: beginsWith(`${projectId}/`) as never });
  const find = (projectId: ProjectId, name: string): Promise<TemplateDocument | null> =>
    templates.findOne({ _id: idOf(projectId, name), projectId, ...notDeleted });
  const removeContent = ({ contentId }: Written, projectId: ProjectId) =>
    contents.deleteOne({ _id: contentId, projectId });

  return guardStore({
    ...projectRows(templates, indexes, indexes.list),

    find,

    /** Undefined when it is not named any more since its template was read. */
    content: async (projectId: ProjectId, { contentId }: Written): Promise<string | undefined> =>
      (await contents.findOne({ _id: contentId, projectId }, { projection: { content: 1 } }))?.content,

    /** Stores a draft. `full`: the project has its maximum of templates; `deleting`: the name is not free yet. */
    putDraft: async (
      projectId: ProjectId,
      name: string,
      { content, ...written }: Pick<Written, "digest" | "author" | "at"> & { readonly content: string },
    ): Promise<{ readonly row: TemplateRow; readonly created: boolean } | "full" | "deleting"> => {
      const _id = idOf(projectId, name);
      const { perProject: limit } = templateLimits;
      if ((await find(projectId, name)) === null) {
        const count = await templates.countDocuments(ofProject(projectId), { hint: indexName(indexes.list), limit });
        if (count >= limit) return "full";
      }
      const contentId: ContentId = `${contentsOf(_id)}${randomBytes(12).toString("base64url")}`;
      const draft = { ...written, contentId, bytes: Buffer.byteLength(content) };
      // First: no reader finds a draft without its content.
      await contents.insertOne({ _id: contentId, projectId, content, at: draft.at });
      const change = async (): Promise<TemplateRow | undefined> => {
        const before = await templates.findOneAndUpdate(
          { _id, projectId, ...notDeleted },
          { $set: { draft } },
          { returnDocument: "before", projection: { outbox: 0 } },
        );
        if (before === null) return undefined;
        const { versions, ...known } = before;
        // No publication can name it any more.
        if (!versions.some((one) => one.contentId === known.draft.contentId))
          await removeContent(known.draft, projectId);
        return { ...known, draft };
      };
      const changed = await change();
      if (changed) return { row: changed, created: false };
      if (await insertMissing(templates, [{ _id, projectId, name, draft, versions: [] }]))
        return { row: { _id, projectId, name, draft }, created: true };
      // Another request has created it, or it is being deleted.
      const again = await change();
      if (again) return { row: again, created: false };
      await removeContent(draft, projectId);
      return "deleting";
    },

    /** Makes the draft a version, unless another draft or version was written since `before` was read: then it returns null. */
    publish: async (context: EventContext, before: TemplateDocument, author: Author) => {
      const { _id, projectId, name, draft, published } = before;
      const version = (published?.version ?? 0) + 1;
      const next: StoredVersion = { ...draft, version, author, at: context.at };
      const event = registryEvent(context, "TemplatePublishedV1", name, { template: name, version, author });
      const versions = [...before.versions, next].slice(-templateLimits.versions);
      const after = await templates.findOneAndUpdate(
        {
          _id,
          projectId,
          ...notDeleted,
          "draft.contentId": draft.contentId,
          "published.version": published === undefined ? { $exists: false } : published.version,
        },
        { $set: { published: next, versions }, $push: { outbox: event } },
        { returnDocument: "after", projection },
      );
      if (after === null) return null;
      // Also those that a crash left.
      const named = versions.map(({ contentId }) => contentId);
      await contents.deleteMany({
        projectId,
        _id: { ...beginsWith(contentsOf(_id)), $nin: named } as never,
        $or: [
          { at: { $lt: new Date(context.at.getTime() - writtenWithinMs) } },
          { _id: { $in: before.versions.map(({ contentId }) => contentId) } },
        ],
      });
      return after;
    },

    list: (projectId: ProjectId, request: PageRequest): Promise<PageOf<TemplateRow>> =>
      findPage(templates, {
        filter: { ...ofProject(projectId), ...notDeleted },
        hint: indexName(indexes.list),
        request,
        counts,
        projection,
      }),

    /** The bytes of the published versions of a project's templates, by name. */
    publishedBytes: async (projectId: ProjectId): Promise<ReadonlyMap<string, number>> => {
      const rows = await findSome(templates, ofProject(projectId), {
        hint: indexName(indexes.list),
        limit: templateLimits.perProject,
        projection: { name: 1, "published.bytes": 1 },
      });
      return new Map(rows.map(({ name, published }) => [name, published?.bytes ?? 0]));
    },

    /** The first step of a deletion. */
    markDeleted: (projectId: ProjectId, name: string, deletedAt: Date) =>
      templates.findOneAndUpdate(
        { _id: idOf(projectId, name), projectId, ...notDeleted },
        { $set: { deletedAt } },
        { returnDocument: "after", projection },
      ),

    /** Call it when no gateway can read it any more. Does nothing if another call has removed it; its name may have a new template then. */
    remove: async ({ _id, projectId }: TemplateRow): Promise<void> => {
      const deleted = await templates.findOne({ _id, projectId, deletedAt: { $exists: true } });
      if (!deleted?.deletedAt) return;
      // No others: a draft of the next template has its content before its row.
      const named = [deleted.draft, ...deleted.versions].map(({ contentId }) => contentId);
      await contents.deleteMany({ projectId, _id: { $in: named } });
      await templates.deleteOne({ _id, projectId, deletedAt: deleted.deletedAt });
    },

    /** Also a deleted one. */
    findAny: (_id: TemplateId): Promise<TemplateRow | null> => templates.findOne({ _id }, { projection }),

    /** The next templates by id, also deleted ones. */
    after: (after: TemplateId | undefined, limit: number): Promise<TemplateRow[]> =>
      findSome(
        templates,
        { _id: { $gt: after ?? (beforeTemplates as TemplateId) } },
        { hint: "_id_", sort: { _id: 1 }, limit, projection },
      ),
  });
};
