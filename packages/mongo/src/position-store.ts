import type { Collection, Db } from "mongodb";
import { upsertOnce } from "./conflicts.ts";
import { guardStore } from "./unavailable.ts";

type PositionDocument = {
  /** The durable. */
  readonly _id: string;
  /** The durable has read everything up to this sequence, or the stream has removed it. */
  readonly position: number;
};

/** Positions of durables in streams that remove their oldest messages. Throws `database-unavailable` when the database is unavailable. */
export const createPositionStore = (db: Db) => {
  const stored: Collection<PositionDocument> = db.collection("positions");
  return guardStore({
    /**
     * Stores that the durable has read everything up to `position` of a stream that holds `first` to `last`. Returns the maximum number of
     * messages that were removed before the durable read them; counts each message once.
     */
    advance: async (
      durable: string,
      position: number,
      { first, last }: { readonly first: number; readonly last: number },
    ): Promise<number> => {
      const reached = Math.max(position, first - 1);
      const before = await upsertOnce(() =>
        stored.findOneAndUpdate(
          { _id: durable },
          { $max: { position: reached } },
          { upsert: true, returnDocument: "before" },
        ),
      );
      if (before === null) return 0;
      // The stream was recreated and counts from 1 again.
      if (before.position > last) {
        await stored.updateOne({ _id: durable, position: before.position }, { $set: { position: reached } });
        return 0;
      }
      return Math.max(0, first - 1 - before.position);
    },
  });
};
