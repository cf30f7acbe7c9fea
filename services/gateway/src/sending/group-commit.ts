import { HeraldError } from "@herald/kit";

type Waiting<Item> = { readonly item: Item; readonly resolve: () => void; readonly reject: (error: unknown) => void };

export type GroupCommitOptions = {
  /** Items in one group at most. */
  readonly most: number;
  /** Groups that are written at the same time. */
  readonly concurrent: number;
  /** Items that may wait; past that they would be answered after their sender gave up. */
  readonly waiting: number;
};

/**
 * Writes items in groups without ever waiting for a group to fill: an item that finds the writer idle goes at once, and what
 * arrives while it writes goes together in the next group, so that one disk sync serves them all.
 * Each call resolves when its item is written, and rejects with what its group failed with.
 */
export const createGroupCommit = <Item>(
  write: (items: Item[]) => Promise<void>,
  { most, concurrent, waiting }: GroupCommitOptions,
): ((item: Item) => Promise<void>) => {
  let queue: Waiting<Item>[] = [];
  let writing = 0;

  const writeGroup = async (group: Waiting<Item>[]): Promise<void> => {
    try {
      await write(group.map(({ item }) => item));
      for (const { resolve } of group) resolve();
    } catch (error) {
      for (const { reject } of group) reject(error);
      if (!(error instanceof HeraldError) || error.code !== "bus-away") return;
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
