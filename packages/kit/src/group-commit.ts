import { HeraldError } from "./herald-error.ts";

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly bytes: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export type GroupCommitOptions<Item> = {
  /** Items in one group at most. */
  readonly max: number;
  /** Whose an item is: where more wait than go into a group, all who have some take turns. Absent: first come, first served. */
  readonly keyOf?: (item: Item) => string;
  /** Groups that are written at the same time. */
  readonly concurrent: number;
  /**
   * Groups begin at least so far apart, in milliseconds, unless one is full: for writes that cost much by themselves, however little
   * is in them. An item that finds the writer idle for so long still goes at once. Absent: 0.
   */
  readonly intervalMs?: number;
  /** Items that may wait, where past that they would be answered after their sender gave up; absent: any number. */
  readonly waiting?: number;
  /** Bytes of items in one group; one that alone has more is a group of its own. Absent: any number. */
  readonly groupBytes?: number;
  /** Bytes of items that may wait or be written at a time; absent: any number. */
  readonly maxBytes?: number;
  /**
   * An item that finds the writer idle goes at the end of this turn of the event loop, together with those that came in it: for items that
   * come several at a time, of which the first would go alone and hold up the others. Absent: at once.
   */
  readonly atEndOfTurn?: boolean;
};

/**
 * Writes items in groups without ever waiting for a group to fill: an item that finds the writer idle goes at once, and what
 * arrives while it writes goes together in the next group, so that one round trip and one disk sync serve them all.
 * `write` resolves to the result of each item, in order. `bytes` is what an item counts towards `groupBytes` and `maxBytes`. Each call
 * resolves to that when its item is written, and rejects with what its group failed with.
 */
export const createGroupCommit = <Item, Result>(
  write: (items: readonly Item[]) => Promise<readonly Result[]>,
  {
    max,
    keyOf,
    concurrent,
    intervalMs = 0,
    groupBytes = Number.POSITIVE_INFINITY,
    waiting = Number.POSITIVE_INFINITY,
    maxBytes = Number.POSITIVE_INFINITY,
    atEndOfTurn = false,
  }: GroupCommitOptions<Item>,
): ((item: Item, bytes?: number) => Promise<Result>) => {
  let queue: Waiting<Item, Result>[] = [];
  let writing = 0;
  let held = 0;
  let lastBegunAt = Number.NEGATIVE_INFINITY;
  let timed = false;
  let turning = false;

  const release = (items: readonly Waiting<Item, Result>[]): void => {
    for (const { bytes } of items) held -= bytes;
  };

  const writeGroup = async (group: readonly Waiting<Item, Result>[]): Promise<void> => {
    try {
      const results = await write(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of group) reject(error);
      if (!isUnavailable(error)) return;
      // Those who waited behind the group would only find out the same, one timeout later each.
      const behind = queue;
      queue = [];
      release(behind);
      for (const { reject } of behind) reject(error);
    }
  };

  /** All that wait, or the first of them as the keys take turns. */
  const inTurns = (): readonly Waiting<Item, Result>[] => {
    if (keyOf === undefined || queue.length <= max) return queue;
    const lines = [...Map.groupBy(queue, ({ item }) => keyOf(item)).values()];
    if (lines.length === 1) return queue;
    const turns: Waiting<Item, Result>[] = [];
    for (let turn = 0; turns.length < max; turn++)
      for (const line of lines) {
        const next = line[turn];
        if (next) turns.push(next);
      }
    return turns;
  };

  /** Takes those that go together. */
  const nextGroup = (): readonly Waiting<Item, Result>[] => {
    let count = 0;
    let bytes = 0;
    const first = inTurns();
    for (const waiting of first) {
      bytes += waiting.bytes;
      if (count === max || (count > 0 && bytes > groupBytes)) break;
      count++;
    }
    if (first === queue) return queue.splice(0, count);
    const group = new Set(first.slice(0, count));
    queue = queue.filter((waiting) => !group.has(waiting));
    return [...group];
  };

  /** Whether the next group has to wait for its time; then it is pumped when that has come. */
  const early = (): boolean => {
    if (intervalMs === 0 || queue.length >= max) return false;
    const waitMs = lastBegunAt + intervalMs - performance.now();
    if (waitMs <= 0) return false;
    if (timed) return true;
    timed = true;
    setTimeout(() => {
      timed = false;
      pump();
    }, Math.ceil(waitMs));
    return true;
  };

  const pump = (): void => {
    while (writing < concurrent && queue.length > 0 && !early()) {
      lastBegunAt = performance.now();
      writing++;
      const group = nextGroup();
      void writeGroup(group).finally(() => {
        writing--;
        release(group);
        pump();
      });
    }
  };

  const pumpAtEndOfTurn = (): void => {
    if (turning || writing >= concurrent) return;
    turning = true;
    setImmediate(() => {
      turning = false;
      pump();
    });
  };

  return (item, bytes = 0) =>
    new Promise((resolve, reject) => {
      // One that is alone goes, however large it is.
      if (queue.length >= waiting || (held > 0 && held + bytes > maxBytes)) {
        reject(new HeraldError("queue-full", "too many requests wait to be written", { retryAfterSeconds: 1 }));
        return;
      }
      held += bytes;
      queue.push({ item, bytes, resolve, reject });
      if (atEndOfTurn) pumpAtEndOfTurn();
      else pump();
    });
};

const isUnavailable = (error: unknown): boolean =>
  error instanceof HeraldError && (error.code === "bus-unavailable" || error.code === "database-unavailable");
