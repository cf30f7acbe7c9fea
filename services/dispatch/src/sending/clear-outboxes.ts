import type { ProjectId } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { BatchFacts } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";

export type ClearOutboxes = {
  /** The events of a row are out, so they need not stay in it. */
  add(row: Pick<BatchFacts, "_id" | "projectId">): void;
  /** Clears what waits, and ends. */
  stop(): Promise<void>;
};

/** Long enough for a broadcast to gather ten rows, and far shorter than the 5 s after which the sweep publishes again. */
const gatherMs = 250;
const mostRows = 100;

/**
 * Clears the outboxes of rows whose events were published, many in one update: on its own each would cost as much as the write
 * of the outcomes. What is lost on the way, the sweep publishes once more under the same ids.
 */
export const createClearOutboxes = (deliveries: Pick<DeliveryStore, "clearOutboxes">, log: Logger): ClearOutboxes => {
  const waiting = new Map<ProjectId, string[]>();
  const running = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;

  const clear = (projectId: ProjectId, ids: readonly string[]) => {
    const run = deliveries
      .clearOutboxes(projectId, ids)
      .catch((err: unknown) => log.warn({ err }, "events that are out stay in the outbox for now"))
      .finally(() => running.delete(run));
    running.add(run);
  };

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    for (const [projectId, ids] of waiting) clear(projectId, ids);
    waiting.clear();
  };

  return {
    add: ({ projectId, _id }) => {
      const ids = waiting.get(projectId) ?? [];
      waiting.set(projectId, ids);
      if (ids.push(_id) >= mostRows) flush();
      else timer ??= setTimeout(flush, gatherMs);
    },
    stop: async () => {
      flush();
      await Promise.all(running);
    },
  };
};
