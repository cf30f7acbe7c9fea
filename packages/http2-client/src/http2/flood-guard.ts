import { Code, ConnectionError } from "./wire.ts";

/** So many frames of no use in less than a second are no accident; fewer cost nothing worth mentioning. */
const maxNuisances = 10_000;
const periodMs = 1_000;
const earnedByRequest = 8;
const earnedBytes = 16; // a peer may give back a window in steps so small

/**
 * Frames that bring no answer (PING, SETTINGS, WINDOW_UPDATE, what is empty, unknown or for a stream that is over) are the
 * peer's to send and this side's to read. What is sent to a peer earns it some; beyond that their rate is limited.
 */
export function createFloodGuard(now = () => performance.now()) {
  let credit = 0;
  let count = 0;
  let since = now();
  return {
    /** A request of so many bytes was sent. */
    earn(bytes: number): void {
      credit += earnedByRequest + Math.floor(bytes / earnedBytes);
    },
    /** Throws a ConnectionError when there are too many. */
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
