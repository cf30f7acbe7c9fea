import type { ApnsReason } from "./reasons.ts";

/** Why a request is not accepted: Apple's reason, and what to change in words. */
export interface Refusal {
  readonly reason: ApnsReason;
  readonly problem: string;
}

export const refuse = (reason: ApnsReason, problem: string): Refusal => ({ reason, problem });
