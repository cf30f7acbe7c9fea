import type { Logger } from "@herald/kit";

type Fill = { readonly bytes: number; readonly maxBytes: number };

type Deps = {
  /** How full the bucket of keys is. Throws bus-unavailable. */
  readonly fill: () => Promise<Fill>;
  readonly now: () => Date;
  readonly log: Logger;
};

export type KeyShare = {
  /** How long what the owner writes now is to be kept, in ms; undefined: as long as any. */
  readonly use: (owner: string, bytes: number) => number | undefined;
};

/** What a key takes with all that the broker stores beside it, without an answer: measured for a send, others take a little more. */
export const keyBytes = 200;
/** Bytes are counted by the hour they were written in, for as long as they are kept. */
const hourMs = 3_600_000;
const hours = 25;
/** Between two looks at the bucket, what this gateway wrote for a day counts as no longer free. */
const measureEveryMs = 10_000;
/** What is beyond the share is kept so long: clients that retry by themselves do so within seconds. */
const shortMs = 600_000;
/** The least that the broker keeps anything. */
const minMs = 1_000;
/** What is short-lived may fill this much of what is free, so that several gateways together leave some. */
const shortPart = 1 / 4;

type Used = { hour: number; readonly counts: number[]; total: number };

/**
 * Keeps one project's keys from pushing out another's, which the bucket does when it is full: whose keys and their answers take more
 * bytes than are free is given short-lived ones. So a project alone fills half of it, n projects an n+1st each, and it never gets
 * full: those that come quicker than the rest has room for live shorter still. Counted by this gateway: with n of them a project
 * alone fills n/(n+1).
 */
export const createKeyShare = ({ fill, now, log }: Deps): KeyShare => {
  const owners = new Map<string, Used>();
  let free = Number.POSITIVE_INFINITY;
  let measuredAt = Number.NEGATIVE_INFINITY;
  /** Short-lived bytes of all owners since the bucket was measured, and of the time before. */
  let lately = 0;
  let before = 0;

  const measure = (at: number): void => {
    if (at - measuredAt < measureEveryMs) return;
    before = at - measuredAt < 2 * measureEveryMs ? lately : 0;
    lately = 0;
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
    use: (owner, bytes) => {
      const at = now().getTime();
      measure(at);
      const used = usedBy(owner, Math.floor(at / hourMs));
      if (used.total + bytes > free) {
        lately += bytes;
        const perMs = Math.max(before / measureEveryMs, lately / Math.max(minMs, at - measuredAt));
        return Math.min(shortMs, Math.max(minMs, (free * shortPart) / perMs));
      }
      free -= bytes;
      used.counts[used.counts.length - 1] = (used.counts.at(-1) ?? 0) + bytes;
      used.total += bytes;
      return undefined;
    },
  };
};
