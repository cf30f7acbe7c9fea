import { errors } from "@herald/contracts";
import { codeOf } from "../bus-error.ts";
import { type Job, projectOf, type Step, type Task, type Verdict } from "../job.ts";

/** One log line and one count for each settled message: its ids and what became of it, never what it says. */
export const recorded: Step = async (job, next) => {
  const verdict = await next();
  if (verdict.kind === "split") return verdict;
  const { connection, handler, tasks } = job;
  const { durable } = handler;
  connection.telemetry.settled.add(tasks.length, { durable, outcome: verdict.kind });
  // Of a batch its oldest: they come within its wait, and one figure for each message costs more than handling it.
  const oldest = Math.min(...tasks.map(({ receivedAt }) => receivedAt));
  connection.telemetry.handling.record((performance.now() - oldest) / 1000, { durable });
  const level = levelOf(verdict);
  if (connection.log.isLevelEnabled(level)) for (const task of tasks) log(job, task, verdict, level);
  return verdict;
};

const log = ({ connection, handler, place }: Job, task: Task, verdict: Verdict, level: Level): void => {
  const { durable } = handler;
  const ms = performance.now() - task.receivedAt;
  const { received } = task;
  connection.log[level](
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

type Level = "debug" | "warn" | "error";

const levelOf = (verdict: Verdict): Level => {
  if (verdict.kind === "done") return "debug";
  if (verdict.kind === "dead") return "error";
  const level = "error" in verdict ? errors[codeOf(verdict.error)].log : "warn";
  return level === "error" ? "error" : "warn";
};
