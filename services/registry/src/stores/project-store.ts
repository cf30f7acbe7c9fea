import {
  type ApprovalRule,
  type DeclaredKind,
  type IdentityAlgorithm,
  type IdentityKeyId,
  identityKeyLimits,
  type LimitName,
  type OperatorReference,
  type OutboxEvent,
  type OwnLimits,
  type PageOf,
  type PageRequest,
  type ProjectId,
  type QuietHours,
  type Scope,
  type TokenId,
} from "@herald/contracts";
import {
  type Envelope,
  existing,
  HeraldError,
  type Logger,
  LRUCache,
  type MasterKeys,
  notFound,
  rewrapAll,
} from "@herald/kit";
import {
  type Counts,
  ensureIndexes,
  findByIds,
  findPage,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexName,
  inOneCommand,
  insertMissing,
  isDuplicateKey,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { PauseEntry } from "../domain/pauses.ts";
import { type EventContext, registryEvent } from "../domain/registry-events.ts";
import { deletedIndex, findDeleted, notDeleted } from "./tombstones.ts";

export type TokenEntry = {
  readonly id: TokenId;
  /** SHA-256 of the token. */
  readonly hash: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt?: Date;
  /** Absent: created before Herald stored it. */
  readonly createdBy?: OperatorReference;
  readonly createdAt: Date;
  /** Set: the token is invalid. The entry stays until the gateways' copy is removed. */
  readonly revokedAt?: Date;
};

/** Verifies user tokens: a secret that Herald generated, or a public key. */
export type IdentityKeyEntry = {
  readonly id: IdentityKeyId;
  readonly algorithm: IdentityAlgorithm;
  readonly secret?: Envelope;
  /** JSON of a public JWK. */
  readonly publicKey?: string;
  readonly createdAt: Date;
};

export type ProjectDocument = {
  readonly _id: ProjectId;
  readonly name: string;
  /** Free again once the project is deleted. */
  readonly key?: string;
  readonly openRegistration: boolean;
  readonly tokens: readonly TokenEntry[];
  /** Paths that clients may not write. */
  readonly protectedMetadata: readonly string[];
  readonly identityKeys?: readonly IdentityKeyEntry[];
  /** Grows with every change of the keys, so that concurrent changes respect the limit of keys. */
  readonly identityKeysVersion?: number;
  /** Set by an operator; the others have their defaults. */
  readonly limits?: OwnLimits;
  /** Such as `90d`; null or absent: silent devices stay active. */
  readonly staleAfter?: string | null;
  /** Which share of the devices a notification asks for a receipt; absent: none. */
  readonly receipts?: boolean | number;
  readonly kinds?: readonly DeclaredKind[];
  /** Null or absent: none. */
  readonly quietHours?: QuietHours | null;
  /** A user of the project has, or had, quiet hours. */
  readonly ownHours?: true;
  /** The time zone of its devices without one; absent: UTC. */
  readonly defaultTimeZone?: string;
  /** Null or absent: no send needs approval. */
  readonly approval?: ApprovalRule | null;
  /** The time zones of its devices, see `createZoneList`. */
  readonly zones?: readonly string[];
  /** Nothing of the project is sent; absent: it is, unless all projects are paused. */
  readonly paused?: PauseEntry;
  readonly createdAt: Date;
  /** Set: all data of the project is being removed. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

/** Undefined fields stay as they are. */
type ProjectSettings = {
  readonly [Name in
    | "name"
    | "openRegistration"
    | "protectedMetadata"
    | "staleAfter"
    | "receipts"
    | "quietHours"
    | "defaultTimeZone"
    | "approval"]?: ProjectDocument[Name] | undefined;
};

const indexes = {
  key: { fields: { key: 1 }, purpose: "unique", unique: true, partial: having("key") },
  deleted: deletedIndex,
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

const keyHint = indexName(indexes.key);

/** Authenticated with the encrypted secret, so that the secret cannot be moved to another key. */
export const secretOwner = (projectId: ProjectId, keyId: string) => [projectId, keyId] as const;

export type ProjectStore = ReturnType<typeof createProjectStore>;

export const projectCollection = (db: Db): Collection<ProjectDocument> => db.collection<ProjectDocument>("projects");

/** How long `exists` is cached: far shorter than a deleted project lingers. */
const existsCacheMs = 10_000;
const maxExistsCached = 10_000;

export const projectNotFound = () => notFound("project-not-found", "project");
export const keyTaken = (key: string) =>
  new HeraldError("project-key-taken", `project.key: another project has the key ${key}; choose one that is free`);
const known = <Found>(project: Found | null): Found => existing(project, projectNotFound);

/** @throws HeraldError `project-not-found`, unless a function documents another result. */
export const createProjectStore = (db: Db, counts: Counts, now: () => Date) => {
  const projects = projectCollection(db);
  const knownToExist = new LRUCache<ProjectId, number>({ max: maxExistsCached });
  /** Together, because many first registrations may arrive at the same moment. */
  const exists = inOneCommand(async (ids: readonly ProjectId[]): Promise<boolean[]> => {
    const found = await findByIds(projects, ids, notDeleted, { projection: { _id: 1 } });
    const existing = new Set(found.map(({ _id }) => _id));
    return ids.map((id) => existing.has(id));
  });

  return guardStore({
    ensureIndexes: () => ensureIndexes(projects, Object.values(indexes)),

    /** Also deleted ones. */
    findAny: (id: ProjectId) => projects.findOne({ _id: id }),

    find: (id: ProjectId) => projects.findOne({ _id: id, ...notDeleted }),

    get: async (id: ProjectId): Promise<ProjectDocument> => known(await projects.findOne({ _id: id, ...notDeleted })),

    /** Every registration calls this, so a positive result is cached for 10 s. */
    requireExisting: async (id: ProjectId): Promise<void> => {
      const time = now().getTime();
      if ((knownToExist.get(id) ?? 0) > time - existsCacheMs) return;
      if (!(await exists(id))) throw projectNotFound();
      knownToExist.set(id, time);
    },

    /** False when the id or the key is taken. */
    insert: (project: ProjectDocument): Promise<boolean> => insertMissing(projects, [project]),

    /** All projects, or those of `only`, or the one with the key. */
    list: (
      request: PageRequest,
      { only, key }: { readonly only?: readonly ProjectId[] | undefined; readonly key?: string | undefined } = {},
    ): Promise<PageOf<ProjectDocument>> => {
      const filter = {
        ...notDeleted,
        // The row of all projects is none of them.
        _id: only ? { $in: [...only] } : { $gte: "prj_" as ProjectId },
        ...(key !== undefined && { key: { $exists: true, $eq: key } }),
      };
      return findPage(projects, { filter, hint: key === undefined ? "_id_" : keyHint, request, counts });
    },

    /** Null: the project has another key. @throws HeraldError `project-key-taken` */
    setKey: async (id: ProjectId, key: string): Promise<ProjectDocument | null> => {
      try {
        return await projects.findOneAndUpdate(
          { _id: id, ...notDeleted, $or: [{ key }, { key: { $exists: false } }] },
          { $set: { key } },
          { returnDocument: "after" },
        );
      } catch (error) {
        throw isDuplicateKey(error) ? keyTaken(key) : error;
      }
    },

    /** Throws forbidden for a rule of approval that is looser than the present one, unless `mayLoosen`. */
    change: async (id: ProjectId, settings: ProjectSettings, mayLoosen = false): Promise<ProjectDocument> => {
      const { approval } = settings;
      const isNotLooser: Filter<ProjectDocument> =
        approval === undefined || mayLoosen
          ? {}
          : { $or: [{ approval: null }, ...(approval ? [{ "approval.devices": { $gte: approval.devices } }] : [])] };
      const changed = await projects.findOneAndUpdate(
        { _id: id, ...notDeleted, ...isNotLooser },
        { $set: settings as Partial<ProjectDocument> },
        { returnDocument: "after" },
      );
      if (changed) return changed;
      const found = known(await projects.findOne({ _id: id, ...notDeleted }));
      throw new HeraldError(
        "forbidden",
        `project.approval: sends to more than ${found.approval?.devices} devices need approval; only an admin of the installation may raise the number or remove it`,
      );
    },

    /** Sends ask for the quiet hours of users from now on. False when they do already. */
    setOwnHours: async (id: ProjectId): Promise<boolean> => {
      const filter = { _id: id, ...notDeleted, ownHours: { $exists: false } };
      return (await projects.updateOne(filter, { $set: { ownHours: true } })).modifiedCount > 0;
    },

    /** Null restores a default. */
    changeLimits: async (
      id: ProjectId,
      limits: { readonly [Name in LimitName]?: number | null | undefined },
    ): Promise<ProjectDocument> => {
      const given = Object.entries(limits).map(([name, limit]) => [`limits.${name}`, limit] as const);
      // The database refuses an update without operators.
      if (given.length === 0) return known(await projects.findOne({ _id: id, ...notDeleted }));
      const [set, unset] = [given.filter(([, limit]) => limit !== null), given.filter(([, limit]) => limit === null)];
      return known(
        await projects.findOneAndUpdate(
          { _id: id, ...notDeleted },
          {
            ...(set.length > 0 && { $set: Object.fromEntries(set) }),
            ...(unset.length > 0 && { $unset: Object.fromEntries(unset.map(([path]) => [path, 1 as const])) }),
          },
          { returnDocument: "after" },
        ),
      );
    },

    /** The first step of a deletion. Resolves to the project before the change. */
    markDeleted: async (context: EventContext): Promise<ProjectDocument> => {
      const { projectId, at } = context;
      knownToExist.delete(projectId);
      return known(
        await projects.findOneAndUpdate(
          { _id: projectId, ...notDeleted },
          {
            $set: { deletedAt: at },
            $unset: { key: 1, paused: 1 },
            $push: { outbox: registryEvent(context, "ProjectDeletedV1", projectId, {}) },
          },
        ),
      );
    },

    /** A repeat changes nothing. */
    addToken: async (id: ProjectId, token: TokenEntry): Promise<void> => {
      await projects.updateOne(
        { _id: id, ...notDeleted, "tokens.id": { $ne: token.id } },
        { $push: { tokens: token } },
      );
    },

    revokeToken: async (id: ProjectId, tokenId: TokenId, at: Date): Promise<TokenEntry | undefined> => {
      const before = await projects.findOneAndUpdate(
        { _id: id, ...notDeleted, "tokens.id": { $in: [tokenId] } },
        { $set: { "tokens.$.revokedAt": at } },
      );
      return before?.tokens.find((token) => token.id === tokenId);
    },

    /** Call it when no gateway has the token any more. */
    removeRevokedToken: async (id: ProjectId, tokenId: TokenId): Promise<void> => {
      await projects.updateOne(
        { _id: id },
        { $pull: { tokens: { id: { $in: [tokenId] }, revokedAt: { $exists: true } } } },
      );
    },

    /** "known": the project has a key of that id; "full": it has the maximum of that kind. */
    addIdentityKey: async (id: ProjectId, key: IdentityKeyEntry): Promise<"added" | "known" | "full"> => {
      for (;;) {
        const { identityKeys = [], identityKeysVersion: version } = known(
          await projects.findOne({ _id: id, ...notDeleted }),
        );
        if (identityKeys.some((one) => one.id === key.id)) return "known";
        const same = identityKeys.filter(({ secret }) => (secret === undefined) === (key.secret === undefined));
        const max = key.secret === undefined ? identityKeyLimits.publicKeys : identityKeyLimits.secrets;
        if (same.length >= max) return "full";
        const { modifiedCount } = await projects.updateOne(
          { _id: id, ...notDeleted, identityKeysVersion: version ?? { $exists: false } },
          { $push: { identityKeys: key }, $set: { identityKeysVersion: (version ?? 0) + 1 } },
        );
        if (modifiedCount > 0) return "added";
      }
    },

    removeIdentityKey: async (id: ProjectId, keyId: IdentityKeyId): Promise<boolean> => {
      const { modifiedCount } = await projects.updateOne(
        { _id: id, ...notDeleted, "identityKeys.id": { $in: [keyId] } },
        { $pull: { identityKeys: { id: { $in: [keyId] } } }, $inc: { identityKeysVersion: 1 } },
      );
      return modifiedCount > 0;
    },

    /** Encrypts every identity secret with the first master key. */
    rewrapSecrets: (masterKeys: MasterKeys, log: Logger): Promise<void> => {
      const secrets = async function* () {
        for await (const { _id, identityKeys = [] } of projects.find({ "identityKeys.secret": { $exists: true } }))
          for (const { id, secret } of identityKeys) {
            if (!secret) continue;
            const filter = { _id, identityKeys: { $elemMatch: { id, "secret.dataKey": secret.dataKey } } };
            const store = (rewrapped: Envelope) =>
              projects.updateOne(filter, { $set: { "identityKeys.$.secret": rewrapped } });
            yield { owner: secretOwner(_id, id), envelope: secret, store };
          }
      };
      return rewrapAll(masterKeys, secrets(), { kind: "identity keys", log });
    },

    /** The next projects by id, also deleted ones. */
    after: (after = "prj_" as ProjectId, limit: number): Promise<ProjectDocument[]> =>
      findSome(projects, { _id: { $gt: after } }, { hint: "_id_", sort: { _id: 1 }, limit }),

    deleted: (limit: number): Promise<ProjectDocument[]> => findDeleted(projects, limit),

    /** Removes a deleted project whose event is published. */
    remove: async (id: ProjectId): Promise<void> => {
      await projects.deleteOne({ _id: id, deletedAt: { $exists: true }, outbox: { $exists: false } });
    },
  });
};
