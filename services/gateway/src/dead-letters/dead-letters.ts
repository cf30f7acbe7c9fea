import type { DeadLetterList } from "@herald/bus";
import type { DeadLetter, DurableName, PageOf, Replay } from "@herald/contracts";

/** Answered one by one. `next`: after which one to go on; null where there are no more. */
export type Replays = { readonly replays: Replay[]; readonly next: string | null };

/** Dead letters, as the administration sees and replays them. All throw bus-unavailable. */
export type DeadLetters = {
  readonly list: (request: DeadLetterList) => Promise<PageOf<DeadLetter>>;
  /** Throws dead-letter-not-found. */
  readonly get: (id: string) => Promise<DeadLetter>;
  /** Throws dead-letter-not-found, replay-refused, service-unavailable. The same `attempt` again is the same replay. */
  readonly replay: (id: string, attempt: string) => Promise<Replay>;
  readonly replayMany: (ids: readonly string[], attempt: string) => Promise<Replays>;
  /** The next of a durable that were never replayed. */
  readonly replayNext: (durable: DurableName, after: string, attempt: string) => Promise<Replays>;
};
