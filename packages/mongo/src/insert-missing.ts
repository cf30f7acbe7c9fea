import type { Collection, Document, MongoBulkWriteError, OptionalUnlessRequiredId } from "mongodb";
import { areDuplicateKeys } from "./conflicts.ts";

/**
 * Inserts those of some documents whose keys no unique index has yet; the others stay as they are. Gives those that were refused: in a
 * repeat after a lost answer also what the first try stored. Repeatable.
 */
export const insertNew = async <Doc extends Document & { readonly _id: string }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<Doc[]> => {
  if (documents.length === 0) return [];
  // In one order everywhere: two writers of the same ids in different orders wait for each other in FerretDB.
  const sorted = documents.toSorted((one, other) => (one._id < other._id ? -1 : 1));
  try {
    await collection.insertMany(sorted as OptionalUnlessRequiredId<Doc>[], { ordered: false });
    return [];
  } catch (error) {
    if (!areDuplicateKeys(error)) throw error;
    return [(error as MongoBulkWriteError).writeErrors].flat().flatMap(({ index }) => sorted[index] ?? []);
  }
};

/** The same. False when any were refused. */
export const insertMissing = async <Doc extends Document & { readonly _id: string }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<boolean> => (await insertNew(collection, documents)).length === 0;
