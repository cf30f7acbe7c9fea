import { HeraldError } from "./herald-error.ts";

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export type GroupCommitOptions = {
  /** Items in one group at most. */
  readonly most: number;
  /** Groups that are written at the same time. */
  readonly concurrent: number;
  /** Items that may wait, where past that they would be answered after their sender gave up; absent: any number. */
  readonly waiting?: number;
};

/**
 * Writes items in groups without ever waiting for a group to fill: an item that finds the writer idle goes at once, and what
 * arrives while it writes goes together in the next group, so that one round trip and one disk sync serve them all.
 * `write` resolves to what became of each, in order. Each call resolves to that when its item is written, and rejects with what its
 * group failed with.
 */
export const createGroupCommit = <Item, Result>(
  write: (items: readonly Item[]) => Promise<readonly Result[]>,
  { most, concurrent, waiting = Number.POSITIVE_INFINITY }: GroupCommitOptions,
): ((item: Item) => Promise<Result>) => {
  let queue: Waiting<Item, Result>[] = [];
  let writing = 0;

  const writeGroup = async (group: readonly Waiting<Item, Result>[]): Promise<void> => {
    try {
      const results = await write(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of group) reject(error);
      if (!isAway(error)) return;
      // Those who waited behind the group would only find out the same, one timeout later each.
      const behind = queue;
      queue = [];
      for (const { reject } of behind) reject(error);
    }
  };

  const pump = (): void => {
    while (writing < concurrent && queue.length > 0) {
      writing++;
      void writeGroup(queue.splice(0, most)).finally(() => {
        writing--;
        pump();
      });
    }
  };

  return (item) =>
    new Promise((resolve, reject) => {
      if (queue.length >= waiting) {
        reject(new HeraldError("queue-full", "too many requests wait to be written", { retryAfterSeconds: 1 }));
        return;
      }
      queue.push({ item, resolve, reject });
      pump();
    });
};

const isAway = (error: unknown): boolean =>
  error instanceof HeraldError && (error.code === "bus-away" || error.code === "database-away");
