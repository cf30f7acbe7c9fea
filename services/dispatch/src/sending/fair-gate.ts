import { HeraldError } from "@herald/kit";

/** Limits how much runs at a time, in all and for one key; the keys that wait take turns. */
export type FairGate = {
  /** Waits for so many places, or all that a key may have, and resolves to what gives them back. Calling that twice does nothing. */
  enter(key: string, places: number): Promise<() => void>;
  /** The service stops: who waits, and who comes from now on, gets HeraldError `service-away`, which gives their messages back. */
  close(): void;
};

/**
 * `total` places, of which one key gets at most `perKey`: what waits for a key that has its share keeps nobody else from the
 * places that are left.
 */
export const createFairGate = ({ total, perKey }: { total: number; perKey: number }): FairGate => {
  const inside = new Map<string, number>();
  /** Keys with somebody waiting, in the order of their turns. */
  const lines = new Map<string, Waiter[]>();
  let closed = false;
  let taken = 0;

  const hasShare = (key: string, places: number) => (inside.get(key) ?? 0) + places <= perKey;

  const take = (key: string, places: number) => {
    taken += places;
    inside.set(key, (inside.get(key) ?? 0) + places);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      taken -= places;
      const rest = (inside.get(key) ?? places) - places;
      if (rest === 0) inside.delete(key);
      else inside.set(key, rest);
      admit();
    };
  };

  /** Lets in whoever may enter now; a key that got a place goes to the end of the turns. */
  const admit = () => {
    for (const [key, line] of [...lines]) {
      const [next] = line;
      if (next === undefined || !hasShare(key, next.places)) continue;
      // Whoever wants many would never get them, if those behind took each that comes free.
      if (taken + next.places > total) return;
      line.shift();
      lines.delete(key);
      if (line.length > 0) lines.set(key, line);
      next.admit();
    }
  };

  return {
    enter: (key, wanted) => {
      if (closed) return Promise.reject(stopping());
      const places = Math.min(wanted, perKey, total);
      return new Promise((resolve, reject) => {
        const line = lines.get(key) ?? [];
        lines.set(key, line);
        line.push({ places, admit: () => resolve(take(key, places)), refuse: () => reject(stopping()) });
        admit();
      });
    },
    close: () => {
      closed = true;
      const waiting = [...lines.values()].flat();
      lines.clear();
      for (const { refuse } of waiting) refuse();
    },
  };
};

type Waiter = { readonly places: number; readonly admit: () => void; readonly refuse: () => void };

const stopping = () => new HeraldError("service-away", "dispatch is stopping");
