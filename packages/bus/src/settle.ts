import { deliveryGuard, type ErrorCode, errors } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { codeOf } from "./bus-error.ts";
import { whenConnected } from "./connect.ts";
import type { Settlement, Step, Task } from "./delivery-batch.ts";

/** Something is unavailable: the message is held and tried again here, and nothing is used up. */
export type Hold = { readonly kind: "hold"; readonly code: ErrorCode };

/** What a handler's error means for its message: the settle table. */
export const settlementOf = (error: unknown, deliveryCount: number): Settlement | Hold => {
  const code = codeOf(error);
  const { retry } = errors[code];
  if (retry === "never") return { kind: "dead_lettered", reason: code, detail: detailOf(error), error };
  if (retry === "unavailable") return { kind: "hold", code };
  if (deliveryCount >= deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: detailOf(error), error };
  return { kind: "retried", delayMs: retryDelayMs(deliveryCount), error };
};

/** Herald's messages are made to be shown; anybody else's words may quote the content, so only the error's name is kept. */
const detailOf = (error: unknown): string => {
  if (error instanceof HeraldError) return error.message;
  return error instanceof Error ? error.name : "unknown error";
};

/** A quarter to 30 s, doubling, plus as much again at random: a hundred deliveries last for over an hour. */
export const retryDelayMs = (deliveryCount: number, random = Math.random): number => {
  const base = Math.min(30_000, 250 * 2 ** Math.min(deliveryCount - 1, 10));
  return base + base * random();
};

/** A full queue drains within milliseconds; a database or a service takes seconds to come back. */
export const holdDelayMs = (code: ErrorCode, tries: number, random = Math.random): number => {
  const longest = code === "queue-full" ? 1_000 : 5_000;
  const base = Math.min(longest, 25 * 2 ** Math.min(tries, 10));
  return base * (0.75 + 0.5 * random());
};

/**
 * Tells the broker. While the connection is unavailable that waits, because the client drops what is sent then, and the message would come
 * again although it is done.
 */
export const settled: Step = async (job, next) => {
  const settlement = await next();
  if (settlement.kind === "split") return settlement;
  await whenConnected(job.connection, job.place.signal);
  for (const task of job.tasks) if (!task.settled) tell(task, settlement);
  return settlement;
};

const tell = (task: Task, settlement: Exclude<Settlement, { kind: "split" }>): void => {
  task.settled = true;
  const { received } = task;
  if (settlement.kind === "acked") received.ack();
  else if (settlement.kind === "dead_lettered") received.term(settlement.reason);
  else received.nak(settlement.delayMs);
};
