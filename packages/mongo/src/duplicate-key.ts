import { MongoBulkWriteError, MongoServerError } from "mongodb";

const duplicateKey = 11000;

/** Whether a write failed because a unique index has that key already. */
export const isDuplicateKey = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === duplicateKey;

/**
 * Whether an unordered insert of several failed for that reason alone, so that all others are stored. A bulk write that
 * broke off lists no errors of single documents, and says nothing about what is stored.
 */
export const areDuplicateKeys = (error: unknown): boolean => {
  if (!(error instanceof MongoBulkWriteError)) return false;
  const failed = [error.writeErrors].flat();
  return failed.length > 0 && failed.every(({ code }) => code === duplicateKey);
};

/**
 * Runs an upsert, and once more when it lost a race: of two that insert the same key at once, one gets 11000, and the
 * second time it finds the document that the other made.
 */
export const upsertOnce = async <T>(fn: () => Promise<T>): Promise<T> => {
  try {
    return await fn();
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return await fn();
  }
};
