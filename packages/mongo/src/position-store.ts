import type { Collection, Db } from "mongodb";
import { upsertOnce } from "./conflicts.ts";
import { guardStore } from "./unavailable.ts";

type PositionDocument = {
  /** The durable. */
  readonly _id: string;
  /** It has had everything up to this sequence, or that is gone. */
  readonly position: number;
};

/** Where the durables of a stream were that forgets its oldest. Throws `database-unavailable` when the database is. */
export const createPositionStore = (db: Db) => {
  const stored: Collection<PositionDocument> = db.collection("positions");
  return guardStore({
    /**
     * Remembers that the durable has had all up to `position`, in a stream that keeps `first` to `last`. Gives how many messages, at
     * most, were gone before it had them: each is told once.
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
      // The stream was made anew, and counts from its beginning.
      if (before.position > last) {
        await stored.updateOne({ _id: durable, position: before.position }, { $set: { position: reached } });
        return 0;
      }
      return Math.max(0, first - 1 - before.position);
    },
  });
};
