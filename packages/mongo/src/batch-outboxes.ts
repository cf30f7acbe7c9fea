/** A document whose events are out, and those that it still carries. */
export type Out = {
  readonly _id: string;
  readonly projectId: string;
  readonly entries: readonly string[];
  /** Nothing is added to its outbox any more. */
  readonly final: boolean;
};

export type BatchOutboxes = {
  /** The events of a document are out, so they need not stay in it. */
  add(out: Out): void;
  /** Whether an event was published that its document still carries. */
  has(id: string, entry: string): boolean;
  /** Clears what waits, and ends. */
  stop(): Promise<void>;
};

/** Long enough for a broadcast to gather ten documents, and far shorter than the 5 s after which the sweep publishes again. */
const gatherMs = 250;
const maxDocuments = 100;

/**
 * Clears the outboxes of documents whose events were published, many at a time: on its own each would cost as much as the write
 * that made the event. `clear` never rejects: what is lost on the way, the sweep publishes once more under the same ids.
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
