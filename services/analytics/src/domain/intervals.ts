import { wallTime } from "@herald/rules";
import { slotMs } from "./stats-delta.ts";

/** A rollup covers an hour, split into quarters, or a day in UTC. */
export const unitMs = { hour: 3_600_000, day: 86_400_000 } as const;

const hourMs = unitMs.hour;
/** More than the longest day. */
const marginMs = 26 * hourMs;

export type Interval = { readonly at: Date; readonly end: Date };

export type Range = { readonly from: Date; readonly to: Date };
export type RangePart = Range & { readonly unit: "day" | "hour" | "quarter" };

/** Splits a range into whole days (UTC), whole hours before and after them, and parts of hours at its ends. No part spans two hours. */
export const partsOfRange = (
  { from, to }: Range,
  [unit, ...finer]: readonly (keyof typeof unitMs)[] = ["day", "hour"],
): RangePart[] => {
  if (from >= to) return [];
  if (unit === undefined) return [{ unit: "quarter", from, to }];
  const first = new Date(Math.ceil(from.getTime() / unitMs[unit]) * unitMs[unit]);
  const last = new Date(Math.floor(to.getTime() / unitMs[unit]) * unitMs[unit]);
  if (first > last) return partsOfRange({ from, to }, finer);
  return [
    ...partsOfRange({ from, to: first }, finer),
    ...(first < last ? [{ unit, from: first, to: last }] : []),
    ...partsOfRange({ from: last, to }, finer),
  ];
};

/** Minutes that a zone's clocks are ahead of UTC, as a function of time. */
const offsetIn = (timeZone: string): ((at: number) => number) => {
  if (timeZone === "UTC") return () => 0;
  const known = new Map<number, number>();
  return (at) => {
    const found = known.get(at);
    if (found !== undefined) return found;
    const offset = Math.round((wallTime(at, timeZone) - at) / 60_000);
    known.set(at, offset);
    return offset;
  };
};

/**
 * The hours or days of a time zone that a range touches, in order and without gaps. A day is 23 or 25 hours long where the
 * clocks change, and an hour that the clocks repeat is two intervals. Borders fall on quarters of an hour.
 */
export const intervalsOf = (from: Date, to: Date, interval: "hour" | "day", timeZone: string): Interval[] => {
  const offset = offsetIn(timeZone);
  const label = (at: number): string => {
    // Most hours need one offset: a year by day has 35,000 quarters.
    const hour = Math.floor(at / hourMs) * hourMs;
    const before = offset(hour);
    const minutes = before === offset(hour + hourMs) ? before : offset(at);
    const local = at + minutes * 60_000;
    return interval === "day" ? `${Math.floor(local / (24 * hourMs))}` : `${Math.floor(local / hourMs)}@${minutes}`;
  };
  const first = Math.floor((from.getTime() - marginMs) / hourMs) * hourMs;
  const last = to.getTime() + marginMs;
  const borders: number[] = [];
  let previous: string | undefined;
  for (let at = first; at <= last; at += slotMs) {
    const current = label(at);
    if (current !== previous) borders.push(at);
    previous = current;
  }
  return borders
    .slice(0, -1)
    .map((at, index) => ({ at: new Date(at), end: new Date(borders[index + 1] ?? at) }))
    .filter(({ at, end }) => end > from && at < to);
};
