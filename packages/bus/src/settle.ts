import { deliveryGuard, type ErrorCode, errors } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { codeOf } from "./bus-error.ts";
import { whenConnected } from "./connect.ts";
import type { Settlement, Step, Task } from "./delivery-batch.ts";

/** A dependency is unavailable: hold the message and retry it here. The delivery count does not grow. */
export type Hold = { readonly kind: "hold"; readonly code: ErrorCode };

/** How a handler's error settles its message. */
export const settlementOf = (error: unknown, deliveryCount: number): Settlement | Hold => {
  const code = codeOf(error);
  const { retry } = errors[code];
  if (retry === "never") return { kind: "dead_lettered", reason: code, detail: detailOf(error), error };
  if (retry === "unavailable") return { kind: "hold", code };
  if (deliveryCount >= deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: detailOf(error), error };
  return { kind: "retried", delayMs: retryDelayMs(deliveryCount), error };
};

/** Texts of HeraldErrors are safe to show. Other errors may quote the content, so only their name is kept. */
const detailOf = (error: unknown): string => {
  if (error instanceof HeraldError) return error.message;
  return error instanceof Error ? error.name : "unknown error";
};

/** Doubles from 250 ms to 30 s, plus up to as much jitter: a hundred deliveries take over an hour. */
export const retryDelayMs = (deliveryCount: number, random = Math.random): number => {
  const base = Math.min(30_000, 250 * 2 ** Math.min(deliveryCount - 1, 10));
  return base + base * random();
};

/** A full queue drains within milliseconds; a database or a service needs seconds to recover. */
export const holdDelayMs = (code: ErrorCode, tries: number, random = Math.random): number => {
  const longest = code === "queue-full" ? 1_000 : 5_000;
  const base = Math.min(longest, 25 * 2 ** Math.min(tries, 10));
  return base * (0.75 + 0.5 * random());
};

/**
 * Settles the messages with the broker. Waits while the connection is down, because the client would drop the ack and the broker would
 * redeliver a handled message.
 */
export const settled: Step = async (batch, next) => {
  const settlement = await next();
  if (settlement.kind === "split") return settlement;
  await whenConnected(batch.connection, batch.permit.signal);
  for (const task of batch.tasks) if (!task.settled) settle(task, settlement);
  return settlement;
};

const settle = (task: Task, settlement: Exclude<Settlement, { kind: "split" }>): void => {
  task.settled = true;
  const { received } = task;
  if (settlement.kind === "acked") received.ack();
  else if (settlement.kind === "dead_lettered") received.term(settlement.reason);
  else received.nak(settlement.delayMs);
};
