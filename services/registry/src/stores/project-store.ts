import type { OutboxEvent, PageOf, PageRequest, ProjectId, Scope, TokenId } from "@herald/contracts";
import {
  type Counts,
  ensureIndexes,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  isDuplicateKey,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Occasion, projectDeleted } from "../domain/registry-events.ts";

export type TokenEntry = {
  readonly id: TokenId;
  /** SHA-256 of the token. */
  readonly hash: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt?: Date;
  readonly createdAt: Date;
  /** It is void, and stays here until the gateways were told. */
  readonly revokedAt?: Date;
};

export type ProjectDocument = {
  readonly _id: ProjectId;
  readonly name: string;
  readonly openRegistration: boolean;
  readonly tokens: readonly TokenEntry[];
  readonly createdAt: Date;
  /** It is gone for everyone; what it had is being removed. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

const indexes = {
  deleted: { fields: { deletedAt: 1 }, purpose: "sweep", partial: { deletedAt: { $exists: true } } },
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

export type ProjectStore = ReturnType<typeof createProjectStore>;

export const projectCollection = (db: Db): Collection<ProjectDocument> => db.collection<ProjectDocument>("projects");

const living = { deletedAt: { $exists: false } } as const;

/** How long a project that was seen is taken to be there still: far shorter than what it had is looked for after its end. */
const trustMs = 10_000;
const mostTrusted = 10_000;

export const createProjectStore = (db: Db, counts: Counts, now: () => Date) => {
  const projects = projectCollection(db);
  const seen = new Map<ProjectId, number>();

  return guardStore({
    ensureIndexes: () => ensureIndexes(projects, Object.values(indexes)),

    /** A deleted one too. */
    findAny: async (id: ProjectId): Promise<ProjectDocument | undefined> =>
      (await projects.findOne({ _id: id })) ?? undefined,

    find: async (id: ProjectId): Promise<ProjectDocument | undefined> =>
      (await projects.findOne({ _id: id, ...living })) ?? undefined,

    /** Whether there is such a project; asked for every registration, so it remembers for 10 s that there was. */
    exists: async (id: ProjectId): Promise<boolean> => {
      const time = now().getTime();
      if ((seen.get(id) ?? 0) > time - trustMs) return true;
      const found = await projects.findOne({ _id: id, ...living }, { projection: { _id: 1 } });
      seen.delete(id);
      if (found === null) return false;
      seen.set(id, time);
      const [oldest] = seen.size > mostTrusted ? seen.keys() : [];
      if (oldest !== undefined) seen.delete(oldest);
      return true;
    },

    /** False when the id is taken. */
    insert: async (project: ProjectDocument): Promise<boolean> => {
      try {
        await projects.insertOne(project);
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },

    list: (request: PageRequest): Promise<PageOf<ProjectDocument>> =>
      findPage(projects, { filter: living, hint: "_id_", request, counts }),

    change: async (
      id: ProjectId,
      fields: { name?: string | undefined; openRegistration?: boolean | undefined },
    ): Promise<ProjectDocument | undefined> =>
      (await projects.findOneAndUpdate({ _id: id, ...living }, { $set: fields }, { returnDocument: "after" })) ??
      undefined,

    /** The first step of a deletion; undefined when there is no such project. */
    markDeleted: async (occasion: Occasion): Promise<ProjectDocument | undefined> => {
      const { projectId, at } = occasion;
      seen.delete(projectId);
      const before = await projects.findOneAndUpdate(
        { _id: projectId, ...living },
        { $set: { deletedAt: at }, $push: { outbox: projectDeleted(occasion) } },
      );
      return before ?? undefined;
    },

    /** False when there is no such project, or it has a token of that id. */
    addToken: async (id: ProjectId, token: TokenEntry): Promise<boolean> => {
      const { modifiedCount } = await projects.updateOne(
        { _id: id, ...living, "tokens.id": { $ne: token.id } },
        { $push: { tokens: token } },
      );
      return modifiedCount > 0;
    },

    /** Makes a token void; undefined when the project has none of that id. */
    revokeToken: async (id: ProjectId, tokenId: TokenId, at: Date): Promise<TokenEntry | undefined> => {
      const before = await projects.findOneAndUpdate(
        { _id: id, ...living, "tokens.id": { $in: [tokenId] } },
        { $set: { "tokens.$.revokedAt": at } },
      );
      return before?.tokens.find((token) => token.id === tokenId);
    },

    /** Takes out a token that is void and that no gateway knows any more. */
    forgetToken: async (id: ProjectId, tokenId: TokenId): Promise<void> => {
      await projects.updateOne(
        { _id: id },
        { $pull: { tokens: { id: { $in: [tokenId] }, revokedAt: { $exists: true } } } },
      );
    },

    /** Every project, deleted ones too, in the order of their ids, `limit` after `after`. */
    after: (after: ProjectId | undefined, limit: number): Promise<ProjectDocument[]> =>
      projects
        .find(after ? { _id: { $gt: after } } : {}, { hint: "_id_", sort: { _id: 1 }, limit, batchSize: limit + 1 })
        .toArray(),

    deleted: (limit: number): Promise<ProjectDocument[]> =>
      projects
        .find(
          { deletedAt: { $exists: true } },
          { hint: indexName(indexes.deleted), sort: { deletedAt: 1 }, limit, batchSize: limit + 1 },
        )
        .toArray(),

    /** Removes a deleted project whose event is out. */
    remove: async (id: ProjectId): Promise<void> => {
      await projects.deleteOne({ _id: id, deletedAt: { $exists: true }, outbox: { $exists: false } });
    },
  });
};
