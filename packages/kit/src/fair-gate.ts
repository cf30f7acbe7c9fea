import { HeraldError } from "./herald-error.ts";

/** Limits how much runs at a time, in all and for one key; the keys that wait take turns. */
export type FairGate = {
  /**
   * Waits for so many places, or all that a key may have, and resolves to what gives them back. Calling that twice does nothing.
   * `isGone` says that the caller no longer waits: then it rejects with `service-unavailable` when its turn comes. Rejects with
   * `rate-limited` when the key's line is full, and with `service-unavailable` when too many wait in all.
   */
  enter(key: string, places: number, isGone?: () => boolean): Promise<() => void>;
  /**
   * Waits for one place, and takes so many more as the key's share has free then, up to `most`. However many wait, it waits behind them:
   * for work that is on disk. Rejects with `service-unavailable` when the service stops.
   */
  enterUpTo(key: string, max: number): Promise<{ readonly places: number; readonly leave: () => void }>;
  /** The service stops: who waits, and who comes from now on, gets HeraldError `service-unavailable`, which gives their messages back. */
  close(): void;
};

type Limits = {
  readonly total: number;
  /** Most places of one key; absent: its share, see {@link createShares}. */
  readonly perKey?: number;
  /** How many may wait, of one key and in all; absent: any number, because something else bounds them. */
  readonly line?: { readonly perKey: number; readonly total: number };
};

/** For each free place a key may have three: alone it gets three quarters, and with n others each gets the same and some stay free. */
const perFreePlace = 3;

/** Who has how many of `total` places. */
export type Shares = {
  /** Whether its share lets the key have so many more, as soon as they are free. One that has none may always have some. */
  has(key: string, places: number): boolean;
  /** How many more the key may have now. */
  room(key: string): number;
  take(key: string, places: number): void;
  give(key: string, places: number): void;
  free(): number;
};

/** Shares out places so that one key may have most of them, but never all: somebody new finds some free at any time. */
export const createShares = (total: number, perKey?: number): Shares => {
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
    has: (key, places) => {
      if (perKey !== undefined) return of(key) + places <= perKey;
      return of(key) === 0 || of(key) + places <= perFreePlace * (total - taken - places);
    },
    room: (key) => {
      const free = total - taken;
      if (perKey !== undefined) return Math.max(0, Math.min(free, perKey - of(key)));
      const more = Math.floor((perFreePlace * free - of(key)) / (perFreePlace + 1));
      return Math.max(of(key) === 0 ? Math.min(1, free) : 0, more);
    },
    take: change,
    give: (key, places) => change(key, -places),
    free: () => total - taken,
  };
};

/**
 * `total` places, of which one key gets its share: waiters of a key that has its share do not block others from the remaining places.
 */
export const createFairGate = ({ total, perKey, line: lineLimits }: Limits): FairGate => {
  const shares = createShares(total, perKey);
  /** Keys with somebody waiting, in the order of their turns. */
  const lines = new Map<string, Waiter[]>();
  let waiting = 0;
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

  /** Those who are gone leave their line, from its head on or all of them. */
  const dropGone = (key: string, line: Waiter[], all: boolean) => {
    const gone = all ? line.filter((one) => one.isGone()) : [];
    while (!all && line[0]?.isGone()) gone.push(...line.splice(0, 1));
    if (gone.length === 0) return;
    waiting -= gone.length;
    if (all) line.splice(0, line.length, ...line.filter((one) => !gone.includes(one)));
    if (line.length === 0) lines.delete(key);
    for (const { refuse } of gone) refuse(tooLate());
  };

  /** Admits the waiters that may enter now; a key that got a place goes to the end of the turns. */
  const admit = () => {
    for (const [key, line] of [...lines]) {
      dropGone(key, line, false);
      const [next] = line;
      if (next === undefined || !shares.has(key, next.places)) continue;
      // A waiter for many places would starve if those behind it took each one that becomes free.
      if (next.places > shares.free()) return;
      line.shift();
      waiting--;
      lines.delete(key);
      if (line.length > 0) lines.set(key, line);
      next.admit(Math.max(next.places, Math.min(next.max, shares.room(key))));
    }
  };

  const refusal = (key: string, line: Waiter[]): HeraldError | undefined => {
    if (lineLimits === undefined) return undefined;
    if (line.length >= lineLimits.perKey) dropGone(key, line, true);
    if (line.length >= lineLimits.perKey)
      return new HeraldError("rate-limited", "requests: as many of this project as may be are waiting to be answered", {
        retryAfterSeconds: 1,
      });
    return waiting < lineLimits.total
      ? undefined
      : new HeraldError("service-unavailable", "too many requests are waiting to be answered", {
          retryAfterSeconds: 1,
        });
  };

  /** Resolves to the places that it got: `least`, or up to `most` of what is free. */
  const wait = (key: string, min: number, max: number, isGone = () => false): Promise<number> => {
    if (closed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      const line = lines.get(key) ?? [];
      lines.set(key, line);
      const admitted = (places: number) => {
        shares.take(key, places);
        resolve(places);
      };
      line.push({ places: min, max, isGone, admit: admitted, refuse: reject });
      waiting++;
      admit();
    });
  };

  return {
    enter: async (key, wanted, isGone) => {
      const places = Math.min(wanted, perKey ?? total, total);
      const refused = closed ? undefined : refusal(key, lines.get(key) ?? []);
      if (refused !== undefined) throw refused;
      return leaving(key, await wait(key, places, places, isGone));
    },
    enterUpTo: async (key, max) => {
      const places = await wait(key, 1, max);
      return { places, leave: leaving(key, places) };
    },
    close: () => {
      closed = true;
      const all = [...lines.values()].flat();
      lines.clear();
      waiting = 0;
      for (const { refuse } of all) refuse(stopping());
    },
  };
};

type Waiter = {
  readonly places: number;
  readonly max: number;
  readonly isGone: () => boolean;
  readonly admit: (places: number) => void;
  readonly refuse: (error: HeraldError) => void;
};

const stopping = () => new HeraldError("service-unavailable", "the service is stopping");
const tooLate = () =>
  new HeraldError("service-unavailable", "the time to answer had passed before the request's turn came");
