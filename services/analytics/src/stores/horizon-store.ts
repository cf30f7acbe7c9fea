import { guardStore, upsertOnce } from "@herald/mongo";
import type { Collection, Db } from "mongodb";

type HorizonDocument = { readonly _id: "rows"; readonly since: Date };

/** From when on rows are complete: those of earlier times may be gone. Every function throws `database-away` when the database is. */
export const createHorizonStore = (db: Db) => {
  const horizons: Collection<HorizonDocument> = db.collection("horizons");
  return guardStore({
    /** Undefined where nothing was ever removed. */
    since: async (): Promise<Date | undefined> => (await horizons.findOne({ _id: "rows" }))?.since,

    /** Says that earlier rows may be gone: before the first of them is. It never moves back. */
    advance: async (since: Date): Promise<void> => {
      await upsertOnce(() => horizons.updateOne({ _id: "rows" }, { $max: { since } }, { upsert: true }));
    },
  });
};

export type HorizonStore = ReturnType<typeof createHorizonStore>;
