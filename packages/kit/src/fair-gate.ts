import { AsyncLocalStorage } from "node:async_hooks";
import type { ErrorCode } from "@herald/contracts";
import { HeraldError } from "./herald-error.ts";

type Limits = {
  readonly total: number;
  /** The maximum of one key's places; absent: its share, see {@link createShares}. */
  readonly perKey?: number;
  /**
   * The maximum weight of all waiters, in total and per key; `perKey` absent: its share, see {@link createShares}. `line` absent: any
   * number may wait, because something else bounds them.
   */
  readonly line?: { readonly total: number; readonly perKey?: number };
};

/** A key may have three places per free place: alone it gets three quarters; with n others each gets the same, and some stay free. */
const perFreePlace = 3;

/** Divides places so that one key may have most of them, but never all: a new key always finds a free place. */
export const createShares = (total: number, perKey?: number) => {
  const inside = new Map<string, number>();
  let taken = 0;
  const of = (key: string) => inside.get(key) ?? 0;
  const change = (key: string, by: number) => {
    taken += by;
    const rest = of(key) + by;
    if (rest === 0) inside.delete(key);
    else inside.set(key, rest);
  };
  return {
    /** The number of places that the key has. */
    of,
    /** Whether the key's share allows this many more places once they are free. A key without places may always have some. */
    has: (key: string, places: number) => {
      if (perKey !== undefined) return of(key) + places <= perKey;
      return of(key) === 0 || of(key) + places <= perFreePlace * (total - taken - places);
    },
    /** The number of further places that the key may take now. */
    room: (key: string) => {
      const free = total - taken;
      if (perKey !== undefined) return Math.max(0, Math.min(free, perKey - of(key)));
      const more = Math.floor((perFreePlace * free - of(key)) / (perFreePlace + 1));
      return Math.max(of(key) === 0 ? Math.min(1, free) : 0, more);
    },
    take: change,
    give: (key: string, places: number) => change(key, -places),
    free: () => total - taken,
  };
};

export type FairGate = {
  /**
   * Waits for `wanted` places, or the maximum of a key, and resolves to the function that returns them; a second call does nothing.
   * `isGone` says that the caller no longer waits: then the promise rejects with `service-unavailable` at its turn. Rejects with
   * `rate-limited` when the key's line is full, and with `service-unavailable` when too many wait in total. `weight`: its part of the
   * line's limits.
   */
  enter(key: string, wanted: number, waits?: Waits): Promise<() => void>;
  /** Whether `enter` would reject with `rate-limited` now. */
  isFull(key: string, weight: number): boolean;
  /** How many places a key's callers wait for. Work without weight is in no line. */
  waiting(key: string): number;
  /**
   * Begins `count` pieces of work as the key's share has places for them, a place each. The caller keeps its turn until all have begun. A
   * full line does not refuse it, because the work is stored elsewhere. `begin` runs in the caller's context, gets how many begin now, and
   * gives back their places: those of one turn of the event loop are given on together. Resolves when all have begun. Rejects with `service-unavailable` when the service
   * stops: then the rest does not begin.
   */
  enterEach(key: string, count: number, begin: Begin, weight?: number): Promise<void>;
  /** Stops the gate: rejects all current and later waiters with `service-unavailable`, so that their messages are returned. */
  close(): void;
};

/**
 * Limits the work that runs at a time, in total and per key. Waiting keys take turns. Waiters of a key that has used up its share do not
 * block other keys from the remaining places.
 */
export const createFairGate = ({ total, perKey, line: room }: Limits): FairGate => {
  const shares = createShares(total, perKey);
  /** Keys with waiters, in the order of their turns. */
  const lines = new Map<string, Waiter[]>();
  const weights = room && createShares(room.total, room.perKey);
  let closed = false;

  const leaving = (key: string, places: number) => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      shares.give(key, places);
      admit();
    };
  };

  /** Removes waiters whose callers no longer wait, at the head of the line or all of them. */
  const dropGone = (key: string, line: Waiter[], all: boolean) => {
    const gone = all ? line.filter((one) => one.isGone()) : [];
    while (!all && line[0]?.isGone()) gone.push(...line.splice(0, 1));
    if (gone.length === 0) return;
    if (all) line.splice(0, line.length, ...line.filter((one) => !gone.includes(one)));
    if (line.length === 0) lines.delete(key);
    for (const { weight, refuse } of gone) {
      weights?.give(key, weight);
      refuse(waitedTooLong());
    }
  };

  /** Admits the waiters that may enter now. A key that got a place goes to the end of the turns. */
  const admit = () => {
    // A key that was served is at the end again, and so has another turn.
    for (const [key, line] of lines) {
      dropGone(key, line, false);
      const [next] = line;
      if (next === undefined || !shares.has(key, next.places)) continue;
      // Stop here: a waiter for many places would starve if those behind it took each free place.
      if (next.places > shares.free()) return;
      const places = Math.max(next.places, Math.min(next.left, shares.room(key)));
      const weight = Math.ceil((next.weight * places) / next.left);
      next.left -= places;
      next.weight -= weight;
      weights?.give(key, weight);
      if (next.left === 0) line.shift();
      lines.delete(key);
      if (line.length > 0) lines.set(key, line);
      shares.take(key, places);
      next.admit(places);
    }
  };

  /** Whether a key's line has no room, also after waiters have left it whose callers no longer wait. */
  const isFull = (key: string, weight: number): boolean => {
    if (weights === undefined || weights.has(key, weight)) return false;
    dropGone(key, lines.get(key) ?? [], true);
    return !weights.has(key, weight);
  };

  const refusal = (key: string, weight: number): HeraldError | undefined => {
    if (room === undefined || weights === undefined) return undefined;
    if (isFull(key, weight))
      return crowded("rate-limited", "requests: too many of your requests are waiting to be answered");
    // Without a limit of its own, a key's share leaves others a part of the total.
    const isCrowded = () => room.perKey !== undefined && weights.free() < weight;
    if (!isCrowded()) return undefined;
    dropGone(key, lines.get(key) ?? [], true);
    return isCrowded() ? crowded("service-unavailable", "too many requests are waiting to be answered") : undefined;
  };

  const wait = (key: string, waiter: Waiter): void => {
    if (closed) {
      waiter.refuse(stopping());
      return;
    }
    const line = lines.get(key) ?? [];
    lines.set(key, line);
    line.push(waiter);
    weights?.take(key, waiter.weight);
    admit();
  };

  return {
    enter: async (key, wanted, { isGone = stays, weight = 1 } = {}) => {
      const places = Math.min(wanted, perKey ?? total, total);
      const refused = closed ? undefined : refusal(key, weight);
      if (refused !== undefined) throw refused;
      await new Promise<void>((resolve, refuse) =>
        wait(key, { places, left: places, weight, isGone, admit: () => resolve(), refuse }),
      );
      return leaving(key, places);
    },
    isFull: (key, weight) => !closed && isFull(key, weight),
    waiting: (key) => (lines.get(key) ?? []).reduce((sum, { left, weight }) => (weight > 0 ? sum + left : sum), 0),
    enterEach: (key, count, begin, weight = 0) =>
      new Promise((resolve, refuse) => {
        if (count === 0) return resolve();
        const inCaller = AsyncLocalStorage.snapshot();
        const leave = atOnceInTurn((places) => {
          shares.give(key, places);
          admit();
        });
        const waiter: Waiter = {
          ...{ places: 1, left: count, weight, isGone: stays, refuse },
          admit: (places) => {
            inCaller(begin, places, leave);
            if (waiter.left === 0) resolve();
          },
        };
        wait(key, waiter);
      }),
    close: () => {
      closed = true;
      const all = [...lines.values()].flat();
      lines.clear();
      for (const { refuse } of all) refuse(stopping());
    },
  };
};

/** Begins so many pieces of work. `leave`: gives back places. */
type Begin = (places: number, leave: (places: number) => void) => void;

const stays = () => false;

/** Calls `work` once for all that is counted in one turn of the event loop. */
const atOnceInTurn = (work: (sum: number) => void) => {
  let sum = 0;
  return (count: number): void => {
    if (sum === 0)
      setImmediate(() => {
        const all = sum;
        sum = 0;
        work(all);
      });
    sum += count;
  };
};

type Waits = { readonly isGone?: () => boolean; readonly weight?: number };

/** `places`: the least that it takes at a time. `left`, `weight`: of what has not begun. */
type Waiter = {
  readonly places: number;
  left: number;
  weight: number;
  readonly isGone: () => boolean;
  readonly admit: (places: number) => void;
  readonly refuse: (error: HeraldError) => void;
};

const crowded = (code: ErrorCode, message: string) => new HeraldError(code, message, { retryAfterSeconds: 1 });
const stopping = () => new HeraldError("service-unavailable", "the service is stopping");
const waitedTooLong = () =>
  new HeraldError("service-unavailable", "the time to answer had passed before the request's turn came");
