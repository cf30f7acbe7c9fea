import { errors } from "@herald/contracts";
import { codeOf } from "../bus-error.ts";
import { type DeliveryBatch, projectOf, type Settlement, type Step, type Task } from "../delivery-batch.ts";

/** Writes one log line and one count for each settled message: ids and outcome, never content. */
export const logged: Step = async (batch, next) => {
  const settlement = await next();
  if (settlement.kind === "split") return settlement;
  const { connection, handler, tasks } = batch;
  const { durable } = handler;
  connection.telemetry.settled.add(tasks.length, { durable, outcome: settlement.kind });
  // Only the oldest of a batch: its messages arrive within the batch wait, and a measurement of each would cost more than handling it.
  const oldest = Math.min(...tasks.map(({ receivedAt }) => receivedAt));
  connection.telemetry.processDuration.record((performance.now() - oldest) / 1000, { durable });
  const level = levelOf(settlement);
  if (connection.log.isLevelEnabled(level)) for (const task of tasks) log(batch, task, settlement, level);
  return settlement;
};

const log = (
  { connection, handler, permit }: DeliveryBatch,
  task: Task,
  settlement: Settlement,
  level: Level,
): void => {
  const { durable } = handler;
  const ms = performance.now() - task.receivedAt;
  const { received } = task;
  connection.log[level](
    {
      durable,
      outcome: settlement.kind,
      ms: Math.round(ms),
      messageId: handler.idOf(received),
      projectId: projectOf(task),
      ...(received.deliveryCount > 1 ? { deliveries: received.deliveryCount } : {}),
      ...(permit.holds() > 0 ? { holds: permit.holds() } : {}),
      ...(settlement.kind === "dead_lettered" ? { reason: settlement.reason, detail: settlement.detail } : {}),
      ...("error" in settlement && settlement.error !== undefined ? { err: settlement.error } : {}),
    },
    "message settled",
  );
};

type Level = "debug" | "warn" | "error";

const levelOf = (settlement: Settlement): Level => {
  if (settlement.kind === "acked") return "debug";
  if (settlement.kind === "dead_lettered") return "error";
  const level = "error" in settlement ? errors[codeOf(settlement.error)].log : "warn";
  return level === "error" ? "error" : "warn";
};
