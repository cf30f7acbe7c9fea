import type { Logger } from "@herald/kit";

type Fill = { readonly bytes: number; readonly maxBytes: number };

type Needs = {
  /** How full the bucket of keys is. Throws bus-away. */
  readonly fill: () => Promise<Fill>;
  readonly now: () => Date;
  readonly log: Logger;
};

export type KeyShare = {
  /** How long a key that the owner uses now is to be kept, in ms; undefined: as long as any. */
  readonly use: (owner: string) => number | undefined;
};

/** What a key of a send takes with all that the broker stores beside it, measured; others take a little more. */
const keyBytes = 200;
/** Keys are counted by the hour they were used in, for as long as they are kept. */
const hourMs = 3_600_000;
const hours = 25;
/** The bucket fills slowly: at a thousand keys a second by 2 MB in this time. */
const measureEveryMs = 10_000;
/** What is beyond the share is kept so long: clients that retry by themselves do so within seconds. */
const shortMs = 600_000;

type Used = { hour: number; readonly counts: number[]; total: number };

/**
 * Keeps one project's keys from pushing out another's, which the bucket does when it is full: whose keys take more than is free is
 * given short-lived ones. So a project alone fills half of it, n projects an n+1st each, and it never gets full. Counted by this
 * gateway: with n of them a project alone fills n/(n+1).
 */
export const createKeyShare = ({ fill, now, log }: Needs): KeyShare => {
  const owners = new Map<string, Used>();
  let free = Number.POSITIVE_INFINITY;
  let measuredAt = Number.NEGATIVE_INFINITY;

  const measure = (at: number): void => {
    if (at - measuredAt < measureEveryMs) return;
    measuredAt = at;
    fill().then(
      ({ bytes, maxBytes }) => {
        free = maxBytes < 0 ? Number.POSITIVE_INFINITY : Math.max(0, maxBytes - bytes);
      },
      // Nobody is given less because of what is not known.
      (err: unknown) => log.debug({ err }, "the bucket of idempotency keys cannot be measured"),
    );
    const hour = Math.floor(at / hourMs);
    for (const [owner, used] of owners) if (used.hour + hours <= hour) owners.delete(owner);
  };

  /** What an owner has used, moved on to this hour: what is older than keys are kept is forgotten. */
  const usedBy = (owner: string, hour: number): Used => {
    const used = owners.get(owner) ?? { hour, counts: [0], total: 0 };
    owners.set(owner, used);
    for (; used.hour < hour && used.total > 0; used.hour++) {
      used.counts.push(0);
      if (used.counts.length > hours) used.total -= used.counts.shift() ?? 0;
    }
    used.hour = Math.max(hour, used.hour);
    return used;
  };

  return {
    use: (owner) => {
      const at = now().getTime();
      measure(at);
      const used = usedBy(owner, Math.floor(at / hourMs));
      if (used.total * keyBytes > free) return shortMs;
      used.counts[used.counts.length - 1] = (used.counts.at(-1) ?? 0) + 1;
      used.total++;
      return undefined;
    },
  };
};
