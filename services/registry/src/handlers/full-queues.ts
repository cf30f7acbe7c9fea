import { HeraldError } from "@herald/kit";

/**
 * Which delivery queues are full, and which page waits for each. Only that one tries them: with all that wait, the refused batches
 * of every page would cross the network forty times a second.
 */
export const createFullQueues = () => {
  const waiting = new Map<string, string>();
  return {
    /** Throws `queue-full` while another page than this waits for the queue. */
    pass: (queue: string, page: string): void => {
      const other = waiting.get(queue);
      if (other !== undefined && other !== page)
        throw new HeraldError("queue-full", "another page waits for this queue");
    },
    /** The queue refused a batch of the page. */
    refused: (queue: string, page: string): void => {
      if (!waiting.has(queue)) waiting.set(queue, page);
    },
    waitsFor: (queue: string, page: string): boolean => waiting.get(queue) === page,
    /** The page waits no more, however it ended. */
    leave: (queue: string, page: string): void => {
      if (waiting.get(queue) === page) waiting.delete(queue);
    },
  };
};

export type FullQueues = ReturnType<typeof createFullQueues>;
