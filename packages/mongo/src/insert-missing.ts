import type { Collection, Document, MongoBulkWriteError, OptionalUnlessRequiredId } from "mongodb";
import { areDuplicateKeys } from "./conflicts.ts";

/**
 * Inserts the documents whose keys no unique index has yet, and does not change existing ones. Returns the refused documents; after a lost
 * reply, a retry also returns what the first attempt stored. Repeatable.
 */
export const insertNew = async <Doc extends Document & { readonly _id: string }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<Doc[]> => {
  if (documents.length === 0) return [];
  // Always in the same order: writers of the same ids in different orders deadlock in FerretDB.
  const sorted = documents.toSorted((one, other) => (one._id < other._id ? -1 : 1));
  try {
    await collection.insertMany(sorted as OptionalUnlessRequiredId<Doc>[], { ordered: false });
    return [];
  } catch (error) {
    if (!areDuplicateKeys(error)) throw error;
    return [(error as MongoBulkWriteError).writeErrors].flat().flatMap(({ index }) => sorted[index] ?? []);
  }
};

/** The same; resolves to false when any document was refused. */
export const insertMissing = async <Doc extends Document & { readonly _id: string }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<boolean> => (await insertNew(collection, documents)).length === 0;
