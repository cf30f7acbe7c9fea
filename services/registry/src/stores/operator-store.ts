import type { OperatorId, OperatorRole, PageOf, PageRequest, ProjectGrant } from "@herald/contracts";
import { type Counts, findPage, findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { notDeleted } from "./tombstones.ts";

export type OperatorDocument = {
  readonly _id: OperatorId;
  readonly name: string;
  readonly role: OperatorRole;
  readonly projects: readonly ProjectGrant[];
  /** SHA-256 of the token. */
  readonly tokenHash: string;
  /** Hashes of replaced tokens. They stay until the gateways' copies are removed. */
  readonly replacedHashes?: readonly string[];
  readonly createdAt: Date;
  readonly rotatedAt?: Date;
  /** Sessions that began earlier have ended. */
  readonly signedOutAt?: Date;
  /** Set: the operator has no access. The document stays until the gateways' copy is removed. */
  readonly deletedAt?: Date;
};

export type OperatorStore = ReturnType<typeof createOperatorStore>;

export const createOperatorStore = (db: Db, counts: Counts) => {
  const operators = db.collection<OperatorDocument>("operators");
  /** Undefined fields stay as they are. */
  const change = (
    id: OperatorId,
    fields: {
      readonly [Name in "name" | "role" | "projects" | "signedOutAt" | "deletedAt"]?:
        | OperatorDocument[Name]
        | undefined;
    },
  ) =>
    operators.findOneAndUpdate(
      { _id: id, ...notDeleted },
      { $set: fields as Partial<OperatorDocument> },
      { returnDocument: "after" },
    );
  /**
   * Resolves to the operator with its new token, and `replacedHashes`. The condition on the earlier hash makes the second of two concurrent
   * rotations start again.
   */
  const replaceToken = async (id: OperatorId, tokenHash: string, rotatedAt?: Date) => {
    for (;;) {
      const before = await operators.findOne({ _id: id, ...notDeleted });
      if (before === null || before.tokenHash === tokenHash) return before;
      const after = await operators.findOneAndUpdate(
        { _id: id, ...notDeleted, tokenHash: before.tokenHash },
        { $set: { tokenHash, ...(rotatedAt && { rotatedAt }) }, $push: { replacedHashes: before.tokenHash } },
        { returnDocument: "after" },
      );
      if (after !== null) return after;
    }
  };

  return guardStore({
    find: (id: OperatorId): Promise<OperatorDocument | null> => operators.findOne({ _id: id, ...notDeleted }),

    /** Inserts an operator, or gives the token to an existing one. Null: the operator was deleted. */
    save: async ({ _id, tokenHash, ...fresh }: OperatorDocument): Promise<OperatorDocument | null> => {
      const { upsertedCount } = await operators.updateOne(
        { _id },
        { $setOnInsert: { tokenHash, ...fresh } },
        { upsert: true },
      );
      return upsertedCount > 0 ? { _id, tokenHash, ...fresh } : replaceToken(_id, tokenHash);
    },

    list: (request: PageRequest): Promise<PageOf<OperatorDocument>> =>
      findPage(operators, { filter: notDeleted, hint: "_id_", request, counts }),

    change,

    replaceToken,

    /** Call it when no gateway has these tokens any more. */
    forgetReplaced: async (id: OperatorId, hashes: readonly string[]): Promise<void> => {
      await operators.updateOne({ _id: id }, { $pull: { replacedHashes: { $in: [...hashes] } } });
    },

    /** The first step of a deletion. */
    markDeleted: (id: OperatorId, deletedAt: Date) => change(id, { deletedAt }),

    /** Call it when no gateway has the operator's token any more. */
    remove: async (id: OperatorId): Promise<void> => {
      await operators.deleteOne({ _id: id, deletedAt: { $exists: true } });
    },

    /** The next operators by id, also deleted ones. */
    after: (after: OperatorId | undefined, limit: number): Promise<OperatorDocument[]> =>
      findSome(operators, after ? { _id: { $gt: after } } : {}, { hint: "_id_", sort: { _id: 1 }, limit }),
  });
};
