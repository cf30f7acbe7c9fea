import { deliveryGuard } from "@herald/contracts";
import { type DeliveryBatch, deliveryOf, type Settlement } from "./delivery-batch.ts";
import { holdDelayMs, retryDelayMs, settlementOf } from "./settle.ts";

/** Runs the handler, and runs it again while something is unavailable: the innermost step. */
export const attempt = async ({ handler, tasks, place }: DeliveryBatch): Promise<Settlement> => {
  const alone = tasks.length === 1 ? tasks[0] : undefined;
  if (alone !== undefined && !alone.parsed.ok)
    return { kind: "dead_lettered", reason: "schema", detail: alone.parsed.detail };
  const deliveryCount = alone?.received.deliveryCount ?? 1;
  // Whatever this message does to the process, it did it a hundred times.
  if (deliveryCount > deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: "given up by the process each time" };

  const deliveries = tasks.map((task) => deliveryOf(handler, task, place));
  for (let tries = 0; ; tries++) {
    try {
      await handler.handle(deliveries);
      return { kind: "acked" };
    } catch (error) {
      const settlement = settlementOf(error, deliveryCount);
      if (settlement.kind !== "hold") return alone === undefined ? { kind: "split" } : settlement;
      if (!(await place.wait(holdDelayMs(settlement.code, tries))))
        return { kind: "retried", delayMs: retryDelayMs(1), error };
    }
  }
};
