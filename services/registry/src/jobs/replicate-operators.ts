import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";
import type { OperatorRecord } from "@herald/contracts";
import type { OperatorDocument, OperatorStore } from "../stores/operator-store.ts";
import { readBucket, replicateEntry } from "./replicate-entry.ts";

/** Operators that are read together. */
const pageSize = 200;

const recordOf = ({ _id: id, name, role }: OperatorDocument): OperatorRecord => ({ id, name, role });

export type OperatorReplication = ReturnType<typeof createOperatorReplication>;

/** Replicates operators by the hashes of their tokens into the bucket `push_operators`, which the gateways watch. */
export const createOperatorReplication = (operators: OperatorStore, bucket: Bucket<OperatorRecord>) => {
  const replicateToken = (hash: string): Promise<void> =>
    replicateEntry(bucket, hash, async () => {
      const operator = await operators.findByToken(hash);
      return operator && recordOf(operator);
    });

  /** Replicates an operator as the database has it, and removes what is no longer needed there. */
  const replicate = async ({ _id, tokenHash, replacedHashes = [], deletedAt }: OperatorDocument): Promise<void> => {
    for (const hash of [tokenHash, ...replacedHashes]) await replicateToken(hash);
    if (replacedHashes.length > 0) await operators.forgetReplaced(_id, replacedHashes);
    if (deletedAt) await operators.remove(_id);
  };

  return {
    replicate,

    /** Compares all entries with the database and repairs those that a crash left stale. Resolves to how many it checked again. */
    reconcile: async (signal: AbortSignal): Promise<number> => {
      const stored = await readBucket(bucket, ">", signal);
      let stale = 0;
      for (let page = await operators.after(undefined, pageSize); page.length > 0; ) {
        for (const operator of page) {
          signal.throwIfAborted();
          const { tokenHash, replacedHashes = [], deletedAt } = operator;
          const isCurrent = !deletedAt && isDeepStrictEqual(stored.get(tokenHash), recordOf(operator));
          if (!isCurrent || replacedHashes.length > 0) {
            stale++;
            await replicate(operator);
          }
          for (const hash of [tokenHash, ...replacedHashes]) stored.delete(hash);
        }
        page = await operators.after(page.at(-1)?._id, pageSize);
      }
      // The others belong to tokens and operators that no longer exist.
      for (const hash of stored.keys()) {
        stale++;
        await replicateToken(hash);
      }
      return stale;
    },
  };
};
