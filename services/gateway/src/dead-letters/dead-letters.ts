import type { DeadLetterList } from "@herald/bus";
import type { DeadLetter, DurableName, PageOf, Replay } from "@herald/contracts";

/** One result per dead letter. `next`: `after` of the next request; null when there are no more. */
export type Replays = { readonly replays: Replay[]; readonly next: string | null };

/** Lists and replays dead letters. Every function throws bus-unavailable. */
export type DeadLetters = {
  readonly list: (request: DeadLetterList) => Promise<PageOf<DeadLetter>>;
  /** Throws dead-letter-not-found. */
  readonly get: (id: string) => Promise<DeadLetter>;
  /** Throws dead-letter-not-found, replay-refused, service-unavailable. Repeating an `attempt` repeats no replay. */
  readonly replay: (id: string, attempt: string) => Promise<Replay>;
  readonly replayMany: (ids: readonly string[], attempt: string) => Promise<Replays>;
  /** Replays the next dead letters of a durable that were never replayed. */
  readonly replayNext: (durable: DurableName, after: string, attempt: string) => Promise<Replays>;
};
