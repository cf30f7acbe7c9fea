import { Code, ConnectionError } from "./wire.ts";

const firstLimit = 100; // RFC 9113 recommends that servers allow at least 100
const refusalsOfABrokenPeer = 10; // consecutive refusals with one stream at a time: the peer serves no requests

/**
 * Limits concurrent streams to a peer. The limit grows by one with each answer and halves when the peer refuses streams below
 * its own limit. So a peer that sends GOAWAY after 50 streams, or announces more than it serves, causes few resends.
 */
export function createConcurrencyLimit(max: number) {
  let limit = Math.min(firstLimit, max);
  let halvedAt = 0;
  let refusals = 0;
  return {
    limit: () => limit,
    answered(): void {
      refusals = 0;
      if (limit < max) limit++;
    },
    /**
     * Refusals of streams that were open at the same time halve the limit only once. `newest` is the newest stream of the
     * connection. Returns true when the peer refuses every stream.
     */
    refused(streamId: number, newest: number, inFlight: number): boolean {
      if (++refusals >= refusalsOfABrokenPeer && limit === 1) return true;
      if (streamId > halvedAt) {
        limit = Math.max(1, Math.floor(Math.min(limit, inFlight + 1) / 2));
        halvedAt = newest;
      }
      return false;
    },
  };
}

/** More useless frames than this in a second are an attack; fewer cost almost nothing. */
const maxNuisances = 10_000;
const periodMs = 1_000;
const earnedByRequest = 8;
const earnedBytes = 16; // a peer may open a window in steps as small as this

/**
 * Limits the rate of frames that carry no answer: PING, SETTINGS, WINDOW_UPDATE, and frames that are empty, unknown or for a
 * closed stream. Each request earns the peer some of them without a limit.
 */
export function createFloodGuard(now = () => performance.now()) {
  let credit = 0;
  let count = 0;
  let since = now();
  return {
    /** Adds credit for a request with a body of `bytes`. */
    earn(bytes: number): void {
      credit += earnedByRequest + Math.floor(bytes / earnedBytes);
    },
    /** Counts a useless frame. Throws a ConnectionError when there are too many. */
    nuisance(): void {
      if (credit > 0) {
        credit--;
      } else if (++count > maxNuisances) {
        const time = now();
        if (time - since < periodMs) throw new ConnectionError(Code.enhanceYourCalm, "the peer sends too many frames");
        since = time;
        count = 0;
      }
    },
  };
}

export type FloodGuard = ReturnType<typeof createFloodGuard>;
