import type { Collection, Db } from "mongodb";
import { upsertOnce } from "./conflicts.ts";
import { ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
import { guardStore } from "./unavailable.ts";

/** That a user was erased: the user's key, and never the id. */
export type Erasure = {
  readonly projectId: string;
  /** `userKey` of the user. */
  readonly key: string;
  readonly at: Date;
  /** How many passes were made over what is stored. */
  readonly passes: number;
};

type ErasureDocument = Erasure & { readonly _id: string; readonly nextAt?: Date; readonly expiresAt: Date };

const due = {
  fields: { nextAt: 1 },
  purpose: "due",
  partial: { nextAt: { $exists: true } },
} as const satisfies IndexSpec;
const ending = { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 0 } as const satisfies IndexSpec;

/** A day more than the longest-lived user token: earlier ones are refused for so long, and late passes are made. */
const keepMs = 50 * 3_600_000;

const idOf = ({ projectId, key }: Pick<Erasure, "projectId" | "key">): string => `${projectId}/${key}`;

export type ErasureStore = ReturnType<typeof createErasureStore>;

/** Which users were erased not long ago. Every function throws `database-unavailable` when the database is. */
export const createErasureStore = (db: Db) => {
  const erasures: Collection<ErasureDocument> = db.collection("erasures");
  return guardStore({
    ensureIndexes: () => ensureIndexes(erasures, [due, ending]),

    /** Notes an erasure; of several of one user the last counts. `nextAt`: when the next pass is due. */
    put: async (erasure: Omit<Erasure, "passes">, nextAt?: Date): Promise<void> => {
      const { projectId, key, at } = erasure;
      await upsertOnce(() =>
        erasures.updateOne(
          { _id: idOf(erasure) },
          {
            $setOnInsert: { projectId, key },
            $max: { at, expiresAt: new Date(at.getTime() + keepMs) },
            $set: { passes: 0, ...(nextAt && { nextAt }) },
          },
          { upsert: true },
        ),
      );
    },

    /** When a user was erased, the last time. */
    find: async (projectId: string, key: string): Promise<Date | undefined> =>
      (await erasures.findOne({ _id: idOf({ projectId, key }) }))?.at,

    /** One whose next pass is due, put off until `until` so that no other process makes the same pass. */
    claim: async (now: Date, until: Date): Promise<Erasure | undefined> => {
      const [found] = await erasures
        .find({ nextAt: { $exists: true, $lte: now } }, { hint: indexName(due) })
        .sort({ nextAt: 1 })
        .limit(1)
        .toArray();
      if (found === undefined) return undefined;
      const { modifiedCount } = await erasures.updateOne(
        { _id: found._id, ...(found.nextAt && { nextAt: found.nextAt }) },
        { $set: { nextAt: until } },
      );
      return modifiedCount > 0 ? found : undefined;
    },

    /** A pass was made; `nextAt`: when the next one is due, absent after the last. */
    passed: async (erasure: Erasure, nextAt: Date | undefined): Promise<void> => {
      await erasures.updateOne(
        { _id: idOf(erasure), at: erasure.at },
        {
          $set: { passes: erasure.passes + 1, ...(nextAt && { nextAt }) },
          ...(nextAt ? {} : { $unset: { nextAt: "" } }),
        },
      );
    },

    /** Forgets the erasures of a project that is deleted, all at once; false: nothing is left. */
    removeProject: async (projectId: string): Promise<false> => {
      await erasures.deleteMany({ projectId });
      return false;
    },
  });
};
