import { HeraldError, hasCode } from "./herald-error.ts";

/** The items of one call. `left`: those without a result. */
type Call<Result> = {
  readonly results: PromiseSettledResult<Result>[];
  left: number;
  readonly resolve: (results: readonly PromiseSettledResult<Result>[]) => void;
};

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly bytes: number;
  readonly call: Call<Result>;
  /** The item's place in its call. */
  readonly index: number;
};

const settle = <Result>({ call, index }: Waiting<unknown, Result>, result: PromiseSettledResult<Result>): void => {
  call.results[index] = result;
  if (--call.left === 0) call.resolve(call.results);
};

const fail = <Result>(all: readonly Waiting<unknown, Result>[], reason: unknown): void => {
  for (const waiting of all) settle(waiting, { status: "rejected", reason });
};

const succeed = <Result>(waiting: Waiting<unknown, Result>, result: Result | Promise<Result>): void => {
  if (result instanceof Promise)
    result.then(
      (value: Result) => settle(waiting, { status: "fulfilled", value }),
      (error: unknown) => fail([waiting], error),
    );
  else settle(waiting, { status: "fulfilled", value: result as Result });
};

export type GroupCommit<Item, Result> = {
  /** Writes one item. Resolves to its result, and rejects with its own or with its group's error. `bytes`: its size. */
  (item: Item, bytes?: number): Promise<Result>;
  /** Writes several items, each as if it came alone, with one promise. Resolves when each has its result or its error. */
  all(items: readonly Item[], bytesOf?: (item: Item) => number): Promise<readonly PromiseSettledResult<Result>[]>;
};

export type GroupCommitOptions<Item> = {
  /** The maximum number of items in one group. */
  readonly max: number;
  /** The owner of an item: when more items wait than fit into a group, their owners take turns. Absent: first come, first served. */
  readonly keyOf?: (item: Item) => string;
  /** The number of concurrent writes. */
  readonly concurrent: number;
  /**
   * The minimum time between the starts of two groups, in milliseconds, unless a group is full: for writes with a high fixed cost. An item
   * that finds the writer idle for that long does not wait. Absent: 0.
   */
  readonly intervalMs?: number;
  /** The maximum number of waiting items: further ones would be answered after their sender gave up. Absent: any number. */
  readonly waiting?: number;
  /** The maximum bytes of one group; a larger item gets its own group. Absent: any number. */
  readonly groupBytes?: number;
  /** The maximum bytes of waiting and unfinished items together; absent: any number. */
  readonly maxBytes?: number;
};

/**
 * Writes items in groups, without waiting for a group to fill: an idle writer starts at the end of this turn of the event loop, with all
 * items of the turn, and items that arrive during a write share the next group, with one round trip and one disk sync. `write` resolves
 * to the result of each item, in order, or to a promise of it. The sizes of items count for `groupBytes` and `maxBytes`.
 */
export const createGroupCommit = <Item, Result>(
  write: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>,
  {
    max,
    keyOf,
    concurrent,
    intervalMs = 0,
    groupBytes = Number.POSITIVE_INFINITY,
    waiting = Number.POSITIVE_INFINITY,
    maxBytes = Number.POSITIVE_INFINITY,
  }: GroupCommitOptions<Item>,
): GroupCommit<Item, Result> => {
  let queue: Waiting<Item, Result>[] = [];
  let writing = 0;
  let pendingBytes = 0;
  let lastBegunAt = Number.NEGATIVE_INFINITY;
  let timed = false;
  let turning = false;

  const release = (items: readonly Waiting<Item, Result>[]): void => {
    for (const { bytes } of items) pendingBytes -= bytes;
  };

  const writeGroup = async (group: readonly Waiting<Item, Result>[]): Promise<void> => {
    try {
      const results = await write(group.map(({ item }) => item));
      for (const [index, waiting] of group.entries()) succeed(waiting, results[index] as Result | Promise<Result>);
    } catch (error) {
      fail(group, error);
      if (!hasCode(error, "bus-unavailable", "database-unavailable")) return;
      // The waiters behind the group would get the same error, each after another timeout.
      const behind = queue;
      queue = [];
      release(behind);
      fail(behind, error);
    }
  };

  /** All waiting items, or the first of them if the keys take turns. */
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

  /** Removes the next group from the queue. */
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

  /** Whether it is too early for the next group; if so, sets a timer for it. */
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

  /** Items often arrive several at a time: otherwise the first would be written alone and delay the rest. */
  const pumpAtEndOfTurn = (): void => {
    if (turning || writing >= concurrent) return;
    turning = true;
    setImmediate(() => {
      turning = false;
      pump();
    });
  };

  const enter = (item: Item, bytes: number, call: Call<Result>, index: number): void => {
    const one = { item, bytes, call, index };
    // An item is accepted, however large, if no other item is pending.
    if (queue.length >= waiting || (pendingBytes > 0 && pendingBytes + bytes > maxBytes)) {
      fail([one], new HeraldError("queue-full", "too many requests wait to be written", { retryAfterSeconds: 1 }));
      return;
    }
    pendingBytes += bytes;
    queue.push(one);
    pumpAtEndOfTurn();
  };

  const commit = (item: Item, bytes = 0): Promise<Result> =>
    new Promise((resolve, reject) => {
      const settled = ([result]: readonly PromiseSettledResult<Result>[]) => {
        if (result?.status === "fulfilled") resolve(result.value);
        else reject(result?.reason);
      };
      enter(item, bytes, { results: [], left: 1, resolve: settled }, 0);
    });
  commit.all = (items: readonly Item[], bytesOf: (item: Item) => number = () => 0) =>
    new Promise<readonly PromiseSettledResult<Result>[]>((resolve) => {
      if (items.length === 0) return resolve([]);
      const call: Call<Result> = { results: new Array(items.length), left: items.length, resolve };
      for (const [index, item] of items.entries()) enter(item, bytesOf(item), call, index);
    });
  return commit;
};
