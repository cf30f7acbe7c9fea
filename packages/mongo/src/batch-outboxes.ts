/** A document whose events are published, and the events that it still contains. */
export type Out = {
  readonly _id: string;
  readonly projectId: string;
  readonly entries: readonly string[];
  /** No more events are added to its outbox. */
  readonly final: boolean;
};

export type BatchOutboxes = {
  /** Schedules the removal of published events from their document. */
  add(out: Out): void;
  /** Whether an event was published and its removal is pending. */
  has(id: string, entry: string): boolean;
  /** Clears what is pending, and stops. */
  stop(): Promise<void>;
};

/** A broadcast batches ten documents in this time; far shorter than the 5 s after which the sweep publishes again. */
const gatherMs = 250;
const maxDocuments = 100;

/**
 * Clears the outboxes of published documents in batches: each alone would cost as much as the write that created the event. `clear`
 * never rejects: when it fails, the sweep publishes the events again under the same ids.
 */
export const batchOutboxes = (clear: (documents: readonly Out[]) => Promise<void>): BatchOutboxes => {
  let waiting = new Map<string, Out>();
  const running = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.size === 0) return;
    const run = clear([...waiting.values()]).finally(() => running.delete(run));
    waiting = new Map();
    running.add(run);
  };

  return {
    add: (out) => {
      const { entries = [], final = false } = waiting.get(out._id) ?? {};
      waiting.set(out._id, { ...out, entries: [...entries, ...out.entries], final: final || out.final });
      if (waiting.size >= maxDocuments) flush();
      else timer ??= setTimeout(flush, gatherMs);
    },
    has: (id, entry) => waiting.get(id)?.entries.includes(entry) === true,
    stop: async () => {
      flush();
      await Promise.all(running);
    },
  };
};
