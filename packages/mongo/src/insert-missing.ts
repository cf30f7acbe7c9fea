import type { Collection, Document, OptionalUnlessRequiredId } from "mongodb";
import { areDuplicateKeys } from "./conflicts.ts";

/** Inserts those of some documents whose ids are not there yet; the others stay as they are. False when there were any. Repeatable. */
export const insertMissing = async <Doc extends Document & { readonly _id: string }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<boolean> => {
  if (documents.length === 0) return true;
  // In one order everywhere: two writers of the same ids in different orders wait for each other in FerretDB.
  const sorted = documents.toSorted((one, other) => (one._id < other._id ? -1 : 1));
  try {
    await collection.insertMany(sorted as OptionalUnlessRequiredId<Doc>[], { ordered: false });
    return true;
  } catch (error) {
    if (areDuplicateKeys(error)) return false;
    throw error;
  }
};
