import type { DeliveryReason, Recipient } from "@herald/contracts";
import { delayedUntil, quietEnd, type SendRules, sharedQuietEnd } from "@herald/rules";
import type { Sendable, Skips } from "./settle-row.ts";

/**
 * Why a device gets nothing now. `until`: it gets the push then; absent: never. `end`: when quiet hours end that outlast the notification;
 * absent: they skip it, or the reason is another one.
 */
export type RuleResult = { readonly reason: DeliveryReason; readonly until?: Date; readonly end?: Date };

/** `devices`: the size of the batch. */
type At = { readonly now: Date; readonly expiresAt: Date; readonly devices: number };

const evaluateHours = (rules: SendRules, device: Recipient, at: At): RuleResult | undefined => {
  const end = quietEnd(rules, device, at.now);
  if (end === undefined) return undefined;
  const until = delayedUntil(end, at);
  return { reason: "quiet-hours", ...(until ? { until } : end !== "skip" && { end: sharedQuietEnd(end, at.devices) }) };
};

/**
 * Evaluates the rules for the devices of a batch that is due, before its first attempt: first whether it is switched off, then quiet
 * hours. The cap comes last, for those that are left. Undefined: the device gets the push, as far as these rules are concerned.
 */
export const createEvaluateDevice = (rules: SendRules, at: At) => {
  // Most devices share few time zones and hours, and reading a clock of a zone costs more than all else here.
  const known = new Map<string, RuleResult | undefined>();
  const ofHours = (device: Recipient): RuleResult | undefined => {
    if (!rules.hours && device.quiet === undefined) return undefined;
    const key = `${device.zone} ${device.quiet}`;
    if (!known.has(key)) known.set(key, evaluateHours(rules, device, at));
    return known.get(key);
  };
  return (device: Recipient): RuleResult | undefined => (device.off ? { reason: "muted" } : ofHours(device));
};

/** The results of a row: `of` has a byte for each device, 0 if it gets the push, otherwise the position in `list` plus one. */
export type RuleResults = { readonly list: readonly RuleResult[]; readonly of: Uint8Array };

/** Undefined: all devices get the push. A byte has room: few devices have few results, and many share the full hours of some days. */
export const packRuleResults = (results: readonly (RuleResult | undefined)[]): RuleResults | undefined => {
  const list: RuleResult[] = [];
  const known = new Map<string, number>();
  const of = new Uint8Array(results.length);
  for (const [at, result] of results.entries()) {
    if (!result) continue;
    const key = `${result.reason} ${result.until?.getTime()} ${result.end?.getTime()}`;
    let position = known.get(key);
    if (position === undefined) {
      position = list.push(result);
      known.set(key, position);
    }
    of[at] = position;
  }
  return list.length === 0 ? undefined : { list, of };
};

/** Undefined: the device gets the push. */
export const ruleResultAt = ({ list, of }: RuleResults, index: number): RuleResult | undefined => {
  const position = of[index] ?? 0;
  return position === 0 ? undefined : list[position - 1];
};

/** The devices of a row, to which its results are applied: those that wait know until when, and those that get nothing are in `skips`. */
export const applyRuleResults = (
  devices: readonly Sendable[],
  ruleResults: RuleResults,
  skips: Skips,
): { readonly devices: readonly Sendable[]; readonly skips: Skips } => {
  const all = new Map(skips);
  const next = devices.map((device, at): Sendable => {
    const result = ruleResultAt(ruleResults, at);
    if (result === undefined) return device;
    const { reason, until } = result;
    if (until !== undefined) return { ...device, delayed: until.getTime(), notBefore: until.getTime() };
    if (!all.has(device.id)) all.set(device.id, reason);
    // No attempt was made, also if its process died.
    return { ...device, repeat: false };
  });
  return { devices: next, skips: all };
};
