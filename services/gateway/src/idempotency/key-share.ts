import type { Logger } from "@herald/kit";

type Deps = {
  /** How full the bucket of idempotency keys is. Throws bus-unavailable. */
  readonly fill: () => Promise<{ readonly bytes: number; readonly maxBytes: number }>;
  readonly now: () => Date;
  readonly log: Logger;
};

export type KeyShare = ReturnType<typeof createKeyShare>;

/** Bytes of a key with the broker's overhead, without a response. Measured for a send; other requests need slightly more. */
export const keyBytes = 200;
/** Bytes are counted by the hour of their write, while they are stored. */
const hourMs = 3_600_000;
const hours = 25;
/** Between two measurements, the gateway subtracts its own long-lived writes from the free bytes. */
const measureEveryMs = 10_000;
/** The time to live beyond the share: clients with automatic retries use them within seconds. */
const shortMs = 600_000;
/** The broker's minimum time to live. */
const minMs = 1_000;
/** Short-lived records may fill this part of the free bytes; the rest leaves room for other gateways. */
const shortPart = 1 / 4;

type Used = { hour: number; readonly counts: number[]; total: number };

/**
 * Keeps one project's keys from evicting another's, which happens when the bucket is full. A project whose keys and responses use more
 * bytes than are free gets short-lived records. So one project fills at most half of the bucket, and n projects fill 1/(n+1) each. The
 * bucket never fills up, because lifetimes shrink further when keys arrive faster. Each gateway counts only its own keys: with n gateways
 * one project can fill n/(n+1).
 */
export const createKeyShare = ({ fill, now, log }: Deps) => {
  const owners = new Map<string, Used>();
  let free = Number.POSITIVE_INFINITY;
  let measuredAt = Number.NEGATIVE_INFINITY;
  /** Short-lived bytes of all owners since the last measurement; `before`: in the interval before it. */
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
      // A failed measurement must not shorten any lifetime.
      (err: unknown) => log.debug({ err }, "cannot measure the bucket of idempotency keys"),
    );
    const hour = Math.floor(at / hourMs);
    for (const [owner, used] of owners) if (used.hour + hours <= hour) owners.delete(owner);
  };

  /** The bytes that an owner used, without bytes that have expired by this hour. */
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
    /** Counts a write of the owner. Returns its time to live in ms; undefined: the bucket's default. */
    use: (owner: string, bytes: number): number | undefined => {
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
