import { HeraldError } from "@herald/kit";

/**
 * Full delivery queues, each with the one page that may retry it. If every waiting page retried, their batches would cross the
 * network forty times a second.
 */
export const createFullQueues = () => {
  const waiting = new Map<string, string>();
  return {
    /** @throws HeraldError `queue-full` while another page waits for the queue. */
    check: (queue: string, page: string): void => {
      const other = waiting.get(queue);
      if (other !== undefined && other !== page)
        throw new HeraldError("queue-full", "another page waits for this queue");
    },
    markFull: (queue: string, page: string): void => {
      if (!waiting.has(queue)) waiting.set(queue, page);
    },
    isWaiting: (queue: string, page: string): boolean => waiting.get(queue) === page,
    release: (queue: string, page: string): void => {
      if (waiting.get(queue) === page) waiting.delete(queue);
    },
  };
};

export type FullQueues = ReturnType<typeof createFullQueues>;
