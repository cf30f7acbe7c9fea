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
/** A gateway that has written this part of the free bytes measures earlier: others may be as quick. */
const measureAfterPart = 1 / 8;
/** The time to live beyond the share: clients with automatic retries use them within seconds. */
const shortMs = 600_000;
/** The broker's minimum time to live, and the minimum between two measurements. */
const minMs = 1_000;
/** The broker removes an expired record within this time. */
const removedWithinMs = 2_000;
/** Short-lived records may fill this part of the free bytes; the rest leaves room for other gateways. */
const shortPart = 1 / 4;

type Used = { hour: number; readonly counts: number[]; total: number };

/** Sums bytes until they expire. */
const createExpiringBytes = () => {
  const bySecond = new Map<number, number>();
  let second = Number.NEGATIVE_INFINITY;
  let total = 0;
  return {
    add: (bytes: number, endsAt: number): void => {
      const end = Math.ceil((endsAt + removedWithinMs) / 1_000);
      bySecond.set(end, (bySecond.get(end) ?? 0) + bytes);
      total += bytes;
    },
    at: (time: number): number => {
      const current = Math.floor(time / 1_000);
      if (current > second)
        for (const [end, bytes] of bySecond) {
          if (end > current) continue;
          bySecond.delete(end);
          total -= bytes;
        }
      second = Math.max(second, current);
      return total;
    },
  };
};

/**
 * Keeps one project's keys from evicting another's, which happens when the bucket is full. A project whose keys and responses use more
 * bytes than are free gets short-lived records. So one project fills at most half of the bucket, and n projects fill 1/(n+1) each. The
 * bucket never fills up: lifetimes shrink further when keys arrive faster, and responses that would still not fit are not stored. Each
 * gateway counts only its own keys: with n gateways one project can fill n/(n+1).
 */
export const createKeyShare = ({ fill, now, log }: Deps) => {
  const owners = new Map<string, Used>();
  const shortLived = createExpiringBytes();
  let free = Number.POSITIVE_INFINITY;
  /** Free bytes if no short-lived record of this gateway was stored. */
  let open = Number.POSITIVE_INFINITY;
  let measuredAt = Number.NEGATIVE_INFINITY;
  let measuring = false;
  /** All bytes since the last measurement, the short-lived ones with the time of the first, and their rate in the interval before. */
  let written = 0;
  let lately = 0;
  let latelySince = 0;
  let perMsBefore = 0;

  const measure = (at: number): void => {
    const elapsedMs = at - measuredAt;
    const wrotePart = written > free * measureAfterPart && elapsedMs >= minMs;
    if (measuring || !(wrotePart || elapsedMs >= measureEveryMs)) return;
    perMsBefore = elapsedMs < 2 * measureEveryMs ? lately / elapsedMs : 0;
    written = 0;
    lately = 0;
    measuredAt = at;
    measuring = true;
    fill()
      .then(
        ({ bytes, maxBytes }) => {
          free = maxBytes < 0 ? Number.POSITIVE_INFINITY : Math.max(0, maxBytes - bytes);
          open = free + shortLived.at(now().getTime());
        },
        // A failed measurement must not shorten any lifetime.
        (err: unknown) => log.debug({ err }, "cannot measure the bucket of idempotency keys"),
      )
      .finally(() => {
        measuring = false;
      });
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

  /** The time for which the room for short-lived records suffices at their present rate. */
  const shortLife = (bytes: number, at: number): number => {
    if (lately === 0) latelySince = at;
    lately += bytes;
    const perMs = Math.max(perMsBefore, lately / Math.max(minMs, at - latelySince));
    const room = open * shortPart - shortLived.at(at);
    return room < bytes ? 0 : Math.min(shortMs, room / perMs);
  };

  return {
    /**
     * Counts a write of the owner. Returns its time to live in ms; undefined: the bucket's default; 0: there is no room, and it is not to
     * be written. A record that must be written names the time for which it is needed.
     */
    use: (owner: string, bytes: number, neededMs = 0): number | undefined => {
      const at = now().getTime();
      measure(at);
      const used = usedBy(owner, Math.floor(at / hourMs));
      written += bytes;
      if (used.total + bytes > free) {
        const lifeMs = Math.max(shortLife(bytes, at), neededMs);
        if (lifeMs < minMs) return 0;
        shortLived.add(bytes, at + lifeMs);
        return lifeMs;
      }
      free -= bytes;
      open -= bytes;
      used.counts[used.counts.length - 1] = (used.counts.at(-1) ?? 0) + bytes;
      used.total += bytes;
      return undefined;
    },
  };
};
