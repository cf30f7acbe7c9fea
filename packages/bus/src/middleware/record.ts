import { errors } from "@herald/contracts";
import { codeOf } from "../bus-error.ts";
import { type Job, projectOf, type Step, type Task, type Verdict } from "../job.ts";

/** One log line and one count for each settled message: its ids and what became of it, never what it says. */
export const recorded: Step = async (job, next) => {
  const verdict = await next();
  if (verdict.kind !== "split") for (const task of job.tasks) record(job, task, verdict);
  return verdict;
};

const record = ({ connection, handler, place }: Job, task: Task, verdict: Verdict): void => {
  const { durable } = handler;
  const ms = performance.now() - task.receivedAt;
  connection.telemetry.settled.add(1, { durable, outcome: verdict.kind });
  connection.telemetry.handling.record(ms / 1000, { durable });
  const { received } = task;
  connection.log[levelOf(verdict)](
    {
      durable,
      outcome: verdict.kind,
      ms: Math.round(ms),
      messageId: handler.idOf(received),
      projectId: projectOf(task),
      ...(received.deliveryCount > 1 ? { deliveries: received.deliveryCount } : {}),
      ...(place.holds() > 0 ? { holds: place.holds() } : {}),
      ...(verdict.kind === "dead" ? { reason: verdict.reason, detail: verdict.detail } : {}),
      ...("error" in verdict && verdict.error !== undefined ? { err: verdict.error } : {}),
    },
    "message settled",
  );
};

const levelOf = (verdict: Verdict): "debug" | "warn" | "error" => {
  if (verdict.kind === "done") return "debug";
  if (verdict.kind === "dead") return "error";
  const level = "error" in verdict ? errors[codeOf(verdict.error)].log : "warn";
  return level === "error" ? "error" : "warn";
};
