import type { DeliveryAttempt } from "@herald/contracts";
import type { DeviceResult } from "./result-table.ts";

/** What a row of the ledger says of one device: it is being sent, it waits, or it has a result. */
export type Step =
  | { readonly kind: "started"; readonly at: Date; readonly repeat: boolean }
  | { readonly kind: "waiting"; readonly dueAt: Date }
  | {
      readonly kind: "settled";
      readonly at: Date;
      readonly result: DeviceResult;
      readonly providerId?: string | undefined;
    };

type Known = { readonly attempts: number; readonly repeat: boolean };

const settledAttempt = (
  { attempts, repeat }: Known,
  { at, result, providerId }: Extract<Step, { kind: "settled" }>,
): DeliveryAttempt | undefined => {
  const sent = result.attempts > attempts;
  const { status, reason, providerReason } = result;
  // It only waited: for its server, or for settings that an earlier row was refused with.
  if (status === "deferred" && !sent && providerReason === undefined) return undefined;
  const unanswered = result.possibleRepeat && !repeat;
  const waits = result.blocked ? "held" : "paused";
  const outcome = status !== "deferred" ? status : !sent ? waits : unanswered ? "unknown" : "deferred";
  return {
    attempt: attempts + 1,
    at: at.toISOString(),
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(providerReason === undefined ? {} : { provider_reason: providerReason }),
    ...(providerId === undefined ? {} : { provider_id: providerId }),
    possible_repeat: result.possibleRepeat,
  };
};

/** The attempts in the rows of a device, oldest first, and when it is tried again. */
export const deliveryAttempts = (steps: readonly Step[]): { attempts: DeliveryAttempt[]; nextAttemptAt?: Date } => {
  const attempts: DeliveryAttempt[] = [];
  let known: Known = { attempts: 0, repeat: false };
  let nextAttemptAt: Date | undefined;
  for (const step of steps) {
    nextAttemptAt = step.kind === "waiting" ? step.dueAt : undefined;
    if (step.kind === "started")
      attempts.push({
        attempt: known.attempts + 1,
        at: step.at.toISOString(),
        outcome: "sending",
        possible_repeat: step.repeat,
      });
    if (step.kind !== "settled") continue;
    const attempt = settledAttempt(known, step);
    if (attempt) attempts.push(attempt);
    known = { attempts: step.result.attempts, repeat: step.result.possibleRepeat };
  }
  return { attempts, ...(nextAttemptAt && { nextAttemptAt }) };
};
