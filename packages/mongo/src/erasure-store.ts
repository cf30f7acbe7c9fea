import type { Collection, Db } from "mongodb";
import { upsertOnce } from "./conflicts.ts";
import { ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
import { guardStore } from "./unavailable.ts";

/** An erased user, stored by key, never by id; or a deleted project. */
export type Erasure = {
  readonly projectId: string;
  /** `userKey` of the user; the id of a project. */
  readonly key: string;
  readonly at: Date;
  /** Some of the user's devices, and the `targetKey` of their push tokens: then it is their erasure alone. */
  readonly devices?: string[];
  readonly tokens?: string[];
  /** How many passes have removed stored data. */
  readonly passes: number;
};

type ErasureDocument = Erasure & { readonly _id: string; readonly nextAt?: Date; readonly expiresAt: Date };

const due = {
  fields: { nextAt: 1 },
  purpose: "due",
  partial: { nextAt: { $exists: true } },
} as const satisfies IndexSpec;
const ending = { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 0 } as const satisfies IndexSpec;

/** A day more than the longest lifetime of a user token. Until then, tokens from before the erasure are refused and late passes run. */
const keepMs = 50 * 3_600_000;

const idOf = ({ projectId, key, devices = [] }: Pick<Erasure, "projectId" | "key" | "devices">): string =>
  [projectId, key, ...devices.slice(0, 1)].join("/");

export type ErasureStore = ReturnType<typeof createErasureStore>;

/** Users that were erased and projects that were deleted recently. Every function throws `database-unavailable` when the database is unavailable. */
export const createErasureStore = (db: Db) => {
  const erasures: Collection<ErasureDocument> = db.collection("erasures");
  return guardStore({
    ensureIndexes: () => ensureIndexes(erasures, [due, ending]),

    /** Stores an erasure; the last one of a user or project counts. `passes`: absent for none. `nextAt`: when the next pass is due. */
    put: async (erasure: Omit<Erasure, "passes"> & Partial<Erasure>, nextAt?: Date): Promise<void> => {
      const { projectId, key, at, devices, tokens, passes = 0 } = erasure;
      await upsertOnce(() =>
        erasures.updateOne(
          { _id: idOf(erasure) },
          {
            $setOnInsert: { projectId, key },
            ...(devices && tokens && { $addToSet: { devices: { $each: devices }, tokens: { $each: tokens } } }),
            $max: { at, expiresAt: new Date(at.getTime() + keepMs) },
            $set: { passes, ...(nextAt && { nextAt }) },
          },
          { upsert: true },
        ),
      );
    },

    /** When a user was last erased. */
    find: async (projectId: string, key: string): Promise<Date | undefined> =>
      (await erasures.findOne({ _id: idOf({ projectId, key }) }))?.at,

    /** Claims an erasure whose next pass is due, until `until`, so that no other process makes the same pass. */
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

    /** Stores that a pass ended. `nextAt`: when the next one is due; absent after the last. */
    passed: async (erasure: Erasure, nextAt: Date | undefined): Promise<void> => {
      await erasures.updateOne(
        { _id: idOf(erasure), at: erasure.at },
        {
          $set: { passes: erasure.passes + 1, ...(nextAt && { nextAt }) },
          ...(nextAt ? {} : { $unset: { nextAt: "" } }),
        },
      );
    },

    removeProject: async (projectId: string): Promise<void> => {
      await erasures.deleteMany({ projectId });
    },
  });
};
