import {
  type IdentityAlgorithm,
  type IdentityKeyId,
  identityKeyLimits,
  type OutboxEvent,
  type PageOf,
  type PageRequest,
  type ProjectId,
  type Scope,
  type TokenId,
} from "@herald/contracts";
import type { Envelope } from "@herald/kit";
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

/** What verifies user tokens: a secret of Herald's making, or a public key as JWK. */
export type IdentityKeyEntry = {
  readonly id: IdentityKeyId;
  readonly algorithm: IdentityAlgorithm;
  readonly secret?: Envelope;
  /** JSON of a JWK without anything private. */
  readonly publicKey?: string;
  readonly createdAt: Date;
};

export type ProjectDocument = {
  readonly _id: ProjectId;
  readonly name: string;
  readonly openRegistration: boolean;
  readonly tokens: readonly TokenEntry[];
  /** Paths that clients may not write; absent on projects from before there were any. */
  readonly protectedMetadata?: readonly string[];
  readonly identityKeys?: readonly IdentityKeyEntry[];
  /** Grows with every change of the keys, so that two at a time do not exceed their number. */
  readonly identityKeysVersion?: number;
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
const maxTrusted = 10_000;

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
      const [oldest] = seen.size > maxTrusted ? seen.keys() : [];
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
      fields: Partial<Pick<ProjectDocument, "name" | "openRegistration" | "protectedMetadata">>,
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

    /** Adds an identity key; "known" when the project has one of that id, "full" when it has enough of that kind. */
    addIdentityKey: async (id: ProjectId, key: IdentityKeyEntry): Promise<"added" | "known" | "full" | undefined> => {
      for (;;) {
        const project = await projects.findOne({ _id: id, ...living });
        if (project === null) return undefined;
        const { identityKeys = [], identityKeysVersion: version } = project;
        if (identityKeys.some((known) => known.id === key.id)) return "known";
        const same = identityKeys.filter(({ secret }) => (secret === undefined) === (key.secret === undefined));
        const most = key.secret === undefined ? identityKeyLimits.publicKeys : identityKeyLimits.secrets;
        if (same.length >= most) return "full";
        const { modifiedCount } = await projects.updateOne(
          { _id: id, ...living, identityKeysVersion: version ?? { $exists: false } },
          { $push: { identityKeys: key }, $set: { identityKeysVersion: (version ?? 0) + 1 } },
        );
        if (modifiedCount > 0) return "added";
      }
    },

    /** False when the project has no key of that id. */
    removeIdentityKey: async (id: ProjectId, keyId: IdentityKeyId): Promise<boolean> => {
      const { modifiedCount } = await projects.updateOne(
        { _id: id, ...living, "identityKeys.id": { $in: [keyId] } },
        { $pull: { identityKeys: { id: { $in: [keyId] } } }, $inc: { identityKeysVersion: 1 } },
      );
      return modifiedCount > 0;
    },

    /** Puts the envelope of an identity secret in the place of the one that it had. */
    rewrapIdentityKey: async (id: ProjectId, { id: keyId, secret }: IdentityKeyEntry, wrapped: Envelope) => {
      await projects.updateOne(
        { _id: id, identityKeys: { $elemMatch: { id: keyId, "secret.dataKey": secret?.dataKey ?? "" } } },
        { $set: { "identityKeys.$.secret": wrapped } },
      );
    },

    withIdentitySecrets: (): Promise<ProjectDocument[]> =>
      projects.find({ "identityKeys.secret": { $exists: true } }).toArray(),

    /** Projects from before there was protected metadata, whose operator has not said what to protect. */
    countUnprotected: (): Promise<number> =>
      projects.countDocuments({ ...living, protectedMetadata: { $exists: false } }),

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
