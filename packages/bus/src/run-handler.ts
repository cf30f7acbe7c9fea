import { deliveryGuard } from "@herald/contracts";
import { type DeliveryBatch, deliveryOf, type Settlement } from "./delivery-batch.ts";
import { holdDelayMs, retryDelayMs, settlementOf } from "./settle.ts";

/** Runs the handler and retries it while a dependency is unavailable: the innermost step. */
export const attempt = async ({ handler, tasks, permit }: DeliveryBatch): Promise<Settlement> => {
  const alone = tasks.length === 1 ? tasks[0] : undefined;
  if (alone !== undefined && !alone.parsed.ok)
    return { kind: "dead_lettered", reason: "schema", detail: alone.parsed.detail };
  const deliveryCount = alone?.received.deliveryCount ?? 1;
  // No handler settled it in a hundred deliveries: it may crash the process.
  if (deliveryCount > deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: "given up by the process each time" };

  const deliveries = tasks.map((task) => deliveryOf(handler, task, permit));
  for (let tries = 0; ; tries++) {
    try {
      await handler.handle(deliveries);
      return { kind: "acked" };
    } catch (error) {
      const settlement = settlementOf(error, deliveryCount);
      if (settlement.kind !== "hold") return alone === undefined ? { kind: "split" } : settlement;
      if (!(await permit.wait(holdDelayMs(settlement.code, tries))))
        return { kind: "retried", delayMs: retryDelayMs(1), error };
    }
  }
};
