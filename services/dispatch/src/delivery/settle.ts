import type { OutboxEvent } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { Settlement } from "../domain/settle-batch.ts";
import type { BatchFacts, Run } from "../stores/delivery-document.ts";
import { canRebuildEvents, type DeliveryStore } from "../stores/delivery-store.ts";
import { outcomeRetries, retryWhileUnavailable } from "./retry-while-unavailable.ts";

export type SettleDeps = {
  readonly deliveries: Pick<DeliveryStore, "settle">;
  /** Publishes one event. Throws while the bus is unavailable. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  /** Publishes the events that are stored in a row that is settled. Never throws. */
  readonly publishOutbox: (
    row: Pick<BatchFacts, "_id" | "projectId"> & { outbox: readonly OutboxEvent[] },
  ) => Promise<void>;
  readonly now: () => Date;
  readonly log: Logger;
};

/**
 * Writes a row's outcomes and publishes its events. Undefined when another process has taken the row over: then its outcomes are the
 * ones that count. Throws while the bus is unavailable, for a run whose message brings it back.
 */
export type Settle = (run: Run, settlement: Settlement, signal: AbortSignal) => Promise<Settlement | undefined>;

export const createSettle =
  ({ deliveries, publish, publishOutbox, now, log }: SettleDeps): Settle =>
  async (run, settlement, signal) => {
    const at = now();
    // The pushes are out: until the database is back, only this process has their outcomes.
    const events = await retryWhileUnavailable(() => deliveries.settle(run, settlement, at), signal, outcomeRetries);
    if (events === undefined) {
      log.warn({ batchId: run._id, projectId: run.projectId }, "another process has taken the batch over");
      return undefined;
    }
    if (canRebuildEvents(run, settlement)) await Promise.all(events.map(publish));
    // Published first, for those who wait for them; what fails here stays in the row for the sweep.
    else if (events.length > 0) await publishOutbox({ ...run, outbox: events });
    return settlement;
  };
