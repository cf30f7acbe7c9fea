import { deliveryGuard } from "@herald/contracts";
import { deliveryOf, type Job, type Verdict } from "./job.ts";
import { againDelayMs, holdDelayMs, verdictOf } from "./settle.ts";

/** Runs the handler, and runs it again while something is unavailable: the innermost step. */
export const attempt = async ({ handler, tasks, place }: Job): Promise<Verdict> => {
  const alone = tasks.length === 1 ? tasks[0] : undefined;
  if (alone !== undefined && !alone.parsed.ok) return { kind: "dead", reason: "schema", detail: alone.parsed.detail };
  const deliveryCount = alone?.received.deliveryCount ?? 1;
  // Whatever this message does to the process, it did it a hundred times.
  if (deliveryCount > deliveryGuard)
    return { kind: "dead", reason: "exhausted", detail: "given up by the process each time" };

  const deliveries = tasks.map((task) => deliveryOf(handler, task, place));
  for (let tries = 0; ; tries++) {
    try {
      await handler.handle(deliveries);
      return { kind: "done" };
    } catch (error) {
      const verdict = verdictOf(error, deliveryCount);
      if (verdict.kind !== "hold") return alone === undefined ? { kind: "split" } : verdict;
      if (!(await place.wait(holdDelayMs(verdict.code, tries))))
        return { kind: "again", delayMs: againDelayMs(1), error };
    }
  }
};
