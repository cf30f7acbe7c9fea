import { HeraldError } from "@herald/kit";

/** Limits how many run at a time, in all and for one key; the keys that wait take turns. */
export type FairGate = {
  /** Waits for a place and resolves to what gives it back. Calling that twice does nothing. */
  enter(key: string): Promise<() => void>;
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

  const may = (key: string) => taken < total && (inside.get(key) ?? 0) < perKey;

  const take = (key: string) => {
    taken++;
    inside.set(key, (inside.get(key) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      taken--;
      const rest = (inside.get(key) ?? 1) - 1;
      if (rest === 0) inside.delete(key);
      else inside.set(key, rest);
      admit();
    };
  };

  /** Lets in whoever may enter now; a key that got a place goes to the end of the turns. */
  const admit = () => {
    for (const [key, line] of [...lines]) {
      if (taken >= total) return;
      if (!may(key)) continue;
      const next = line.shift();
      lines.delete(key);
      if (line.length > 0) lines.set(key, line);
      next?.admit();
    }
  };

  return {
    enter: (key) => {
      if (closed) return Promise.reject(stopping());
      if (may(key) && !lines.has(key)) return Promise.resolve(take(key));
      return new Promise((resolve, reject) => {
        const line = lines.get(key) ?? [];
        lines.set(key, line);
        line.push({ admit: () => resolve(take(key)), refuse: () => reject(stopping()) });
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

type Waiter = { readonly admit: () => void; readonly refuse: () => void };

const stopping = () => new HeraldError("service-away", "dispatch is stopping");
