import type { CountedRules, DeliveryReason, Recipient } from "@herald/contracts";
import { delayedUntil, noZone, planWaves, quietEnd } from "@herald/rules";

/** What is known of devices of one zone whose users have the same quiet hours. */
type Clock = { readonly skip?: DeliveryReason; readonly end?: Date | "skip" | undefined; readonly expiresAt: Date };

const clockOf = (rules: CountedRules, { zone, quiet }: Recipient): Clock => {
  const { at, expiresAt, local, ownHours } = rules;
  const wave = local && planWaves(local, [zone ?? noZone])[0];
  if (wave?.skip) return { skip: wave.skip, expiresAt: wave.at };
  const due = wave?.at ?? new Date(at);
  const expires = local ? new Date(due.getTime() + local.ttlMs) : new Date(expiresAt);
  return { end: quietEnd(rules, { zone, ...(ownHours && { quiet }) }, due), expiresAt: expires };
};

const add = (counts: Record<string, number>, name: string, count: number): void => {
  counts[name] = (counts[name] ?? 0) + count;
};

/** Counts the devices that would get nothing or later, in the order in which dispatch evaluates the rules. Caps are not known. */
export const createRuleCounts = (rules: CountedRules) => {
  const skips: Record<string, number> = {};
  // Most devices share few time zones and hours, and reading a clock of a zone costs more than all else here.
  const known = new Map<string, Clock & { devices: number }>();
  let all = 0;
  return {
    add: (device: Recipient): void => {
      all++;
      const key = `${device.zone} ${device.quiet}`;
      const clock = known.get(key) ?? { ...clockOf(rules, device), devices: 0 };
      known.set(key, clock);
      if (clock.skip) add(skips, clock.skip, 1);
      else if (device.off) add(skips, "muted", 1);
      else clock.devices++;
    },
    sums: (): { skips: Record<string, number>; delayed: Record<string, number> } => {
      const delayed: Record<string, number> = {};
      for (const { end, expiresAt, devices } of known.values()) {
        if (end === undefined || devices === 0) continue;
        const until = delayedUntil(end, { expiresAt, devices: all });
        if (until) add(delayed, until.toISOString(), devices);
        else add(skips, "quiet-hours", devices);
      }
      return { skips, delayed };
    },
  };
};
