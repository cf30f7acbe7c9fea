import type { OperatorId, OperatorRole, PageOf, PageRequest } from "@herald/contracts";
import { type Counts, ensureIndexes, findPage, guardStore, type IndexSpec, indexName } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { notDeleted } from "./tombstones.ts";

export type OperatorDocument = {
  readonly _id: OperatorId;
  readonly name: string;
  readonly role: OperatorRole;
  /** SHA-256 of the token. */
  readonly tokenHash: string;
  /** Hashes of replaced tokens. They stay until the gateways' copies are removed. */
  readonly replacedHashes?: readonly string[];
  readonly createdAt: Date;
  readonly rotatedAt?: Date;
  /** The operator may do nothing any more. It stays until the gateways' copy is removed. */
  readonly deletedAt?: Date;
};

const indexes = {
  token: { fields: { tokenHash: 1 }, purpose: "replicate" },
} as const satisfies Record<string, IndexSpec>;

export type OperatorStore = ReturnType<typeof createOperatorStore>;

export const operatorCollection = (db: Db): Collection<OperatorDocument> =>
  db.collection<OperatorDocument>("operators");

export const createOperatorStore = (db: Db, counts: Counts) => {
  const operators = operatorCollection(db);

  return guardStore({
    ensureIndexes: () => ensureIndexes(operators, Object.values(indexes)),

    find: async (id: OperatorId): Promise<OperatorDocument | undefined> =>
      (await operators.findOne({ _id: id, ...notDeleted })) ?? undefined,

    /** The operator whose current token has this hash. */
    findByToken: async (tokenHash: string): Promise<OperatorDocument | undefined> =>
      (await operators.findOne({ tokenHash, ...notDeleted }, { hint: indexName(indexes.token) })) ?? undefined,

    /** Inserts an operator; one that exists gets the token instead. Undefined: it was deleted. */
    save: async ({ _id, tokenHash, ...fresh }: OperatorDocument): Promise<OperatorDocument | undefined> => {
      const { upsertedCount } = await operators.updateOne(
        { _id },
        { $setOnInsert: { tokenHash, ...fresh } },
        { upsert: true },
      );
      if (upsertedCount > 0) return { _id, tokenHash, ...fresh };
      return (await replaceToken(operators, _id, tokenHash, {})) ?? undefined;
    },

    list: (request: PageRequest): Promise<PageOf<OperatorDocument>> =>
      findPage(operators, { filter: notDeleted, hint: "_id_", request, counts }),

    change: async (
      id: OperatorId,
      fields: Partial<Pick<OperatorDocument, "name" | "role">>,
    ): Promise<OperatorDocument | undefined> =>
      (await operators.findOneAndUpdate({ _id: id, ...notDeleted }, { $set: fields }, { returnDocument: "after" })) ??
      undefined,

    /** Resolves to the operator with its new token, and `replacedHashes`. */
    replaceToken: async (id: OperatorId, tokenHash: string, at: Date): Promise<OperatorDocument | undefined> =>
      (await replaceToken(operators, id, tokenHash, { rotatedAt: at })) ?? undefined,

    /** Call it when no gateway has these tokens any more. */
    forgetReplaced: async (id: OperatorId, hashes: readonly string[]): Promise<void> => {
      await operators.updateOne({ _id: id }, { $pull: { replacedHashes: { $in: [...hashes] } } });
    },

    /** The first step of a deletion. Resolves to what the operator was. */
    markDeleted: async (id: OperatorId, at: Date): Promise<OperatorDocument | undefined> =>
      (await operators.findOneAndUpdate({ _id: id, ...notDeleted }, { $set: { deletedAt: at } })) ?? undefined,

    /** Call it when no gateway has the operator's token any more. */
    remove: async (id: OperatorId): Promise<void> => {
      await operators.deleteOne({ _id: id, deletedAt: { $exists: true } });
    },

    /** The next operators by id, also deleted ones. */
    after: (after: OperatorId | undefined, limit: number): Promise<OperatorDocument[]> =>
      operators
        .find(after ? { _id: { $gt: after } } : {}, { hint: "_id_", sort: { _id: 1 }, limit, batchSize: limit + 1 })
        .toArray(),
  });
};

/** Two rotations at the same time: the condition on the earlier hash makes the second one start again. */
const replaceToken = async (
  operators: Collection<OperatorDocument>,
  id: OperatorId,
  tokenHash: string,
  fields: Partial<Pick<OperatorDocument, "rotatedAt">>,
): Promise<OperatorDocument | null> => {
  for (;;) {
    const before = await operators.findOne({ _id: id, ...notDeleted });
    if (before === null || before.tokenHash === tokenHash) return before;
    const after = await operators.findOneAndUpdate(
      { _id: id, ...notDeleted, tokenHash: before.tokenHash },
      { $set: { tokenHash, ...fields }, $push: { replacedHashes: before.tokenHash } },
      { returnDocument: "after" },
    );
    if (after !== null) return after;
  }
};
