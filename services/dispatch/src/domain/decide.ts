import type { DeliveryReason, Recipient } from "@herald/contracts";
import { delayedUntil, quietEnd, type SendRules, sharedQuietEnd } from "@herald/rules";
import type { Sendable, Skips } from "./settle-row.ts";

/**
 * Why a device gets nothing now. `until`: it gets the push then; absent: never. `end`: when quiet hours end that outlast the notification;
 * absent: they skip it, or the reason is another one.
 */
export type Decision = { readonly reason: DeliveryReason; readonly until?: Date; readonly end?: Date };

/** `devices`: the size of the batch. */
type At = { readonly now: Date; readonly expiresAt: Date; readonly devices: number };

const decideHours = (rules: SendRules, device: Recipient, at: At): Decision | undefined => {
  const end = quietEnd(rules, device, at.now);
  if (end === undefined) return undefined;
  const until = delayedUntil(end, at);
  return { reason: "quiet-hours", ...(until ? { until } : end !== "skip" && { end: sharedQuietEnd(end, at.devices) }) };
};

/**
 * Judges the devices of a batch whose push is due, before its first attempt: first whether it is switched off, then quiet hours. The cap
 * comes last, for those that are left. Undefined: the device gets the push, as far as these rules are concerned.
 */
export const createDecide = (rules: SendRules, at: At) => {
  // Most devices share few time zones and hours, and reading a clock of a zone costs more than all else here.
  const known = new Map<string, Decision | undefined>();
  const ofHours = (device: Recipient): Decision | undefined => {
    if (!rules.hours && device.quiet === undefined) return undefined;
    const key = `${device.zone} ${device.quiet}`;
    if (!known.has(key)) known.set(key, decideHours(rules, device, at));
    return known.get(key);
  };
  return (device: Recipient): Decision | undefined => (device.off ? { reason: "muted" } : ofHours(device));
};

/** The decisions of a row: `of` has a byte for each device, 0 if it gets the push, otherwise the position in `list` plus one. */
export type Decided = { readonly list: readonly Decision[]; readonly of: Uint8Array };

/** Undefined: all devices get the push. A byte has room: few devices have few decisions, and many share the full hours of some days. */
export const packDecisions = (decisions: readonly (Decision | undefined)[]): Decided | undefined => {
  const list: Decision[] = [];
  const known = new Map<string, number>();
  const of = new Uint8Array(decisions.length);
  for (const [at, decision] of decisions.entries()) {
    if (!decision) continue;
    const key = `${decision.reason} ${decision.until?.getTime()} ${decision.end?.getTime()}`;
    let position = known.get(key);
    if (position === undefined) {
      position = list.push(decision);
      known.set(key, position);
    }
    of[at] = position;
  }
  return list.length === 0 ? undefined : { list, of };
};

/** What was decided about a device; undefined: it gets the push. */
export const decisionAt = ({ list, of }: Decided, index: number): Decision | undefined => {
  const position = of[index] ?? 0;
  return position === 0 ? undefined : list[position - 1];
};

/** The devices of a row with what was decided about them: those that wait know until when, and those that get nothing are in `skips`. */
export const applyDecisions = (
  devices: readonly Sendable[],
  decided: Decided | undefined,
  skips: Skips,
): { readonly devices: readonly Sendable[]; readonly skips: Skips } => {
  if (decided === undefined) return { devices, skips };
  const all = new Map(skips);
  const next = devices.map((device, at): Sendable => {
    const decision = decisionAt(decided, at);
    if (decision === undefined) return device;
    const { reason, until } = decision;
    if (until !== undefined) return { ...device, delayed: until.getTime(), notBefore: until.getTime() };
    if (!all.has(device.id)) all.set(device.id, reason);
    // No attempt was made, also if its process died.
    return { ...device, repeat: false };
  });
  return { devices: next, skips: all };
};
