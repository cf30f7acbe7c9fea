import {
  maxStatsGroups,
  type OpenTotals,
  type Platform,
  type ReceiptKind,
  type Stats,
  type StatsRequest,
} from "@herald/contracts";
import type { Interval } from "./intervals.ts";
import { timesToOpen } from "./stats-delta.ts";
import { maxNamed } from "./tags.ts";

type ByReason = Record<string, number>;

/** Reports by platform. */
type ReceiptFigures = { readonly [Kind in ReceiptKind]?: Partial<Record<Platform, number>> };

export type Quarter = {
  readonly sent?: Partial<Record<Platform, number>>;
  readonly failed?: Partial<Record<Platform, ByReason>>;
  readonly skipped?: Partial<Record<Platform, ByReason>>;
  readonly opened?: number;
  /** Opens whose platform is known. */
  readonly openedOn?: Partial<Record<Platform, number>>;
  /** Accepted devices that were asked for a receipt. */
  readonly asked?: Partial<Record<Platform, number>>;
} & ReceiptFigures;

/** Figures of one hour, by the first minute of each quarter. */
export type HourFigures = { readonly hour: Date; readonly quarters?: Readonly<Record<string, Quarter>> };

export type OpenFigures = ReceiptFigures & {
  /** Opens by the id of the button that was pressed. */
  readonly buttons?: Readonly<Record<string, number>>;
  readonly opened?: number;
  readonly first?: Date;
  readonly last?: Date;
  readonly times?: Readonly<Record<string, number>>;
};

/** Figures of all values of a dimension in a whole hour or day, by the field of a value. */
export type ValueFigures = { readonly hour: Date; readonly values?: Readonly<Record<string, Quarter>> };

type Counts = { sent: number; opened: number; asked: number; received: number; dismissed: number };
type Sum = Counts & { failures: ByReason; skips: ByReason };

/** The count of a platform, or of all. */
const countOn = (counts: Partial<Record<Platform, number>> = {}, platform?: Platform): number =>
  platform === undefined ? Object.values(counts).reduce((all, count) => all + count, 0) : (counts[platform] ?? 0);

const addReasons = (sum: ByReason, reasons: ByReason): void => {
  for (const [reason, count] of Object.entries(reasons)) sum[reason] = (sum[reason] ?? 0) + count;
};

const addByReason = (sum: ByReason, by: Quarter["failed"] = {}, platform: Platform | undefined): void => {
  for (const [of, reasons] of Object.entries(by))
    if (platform === undefined || of === platform) addReasons(sum, reasons);
};

const sumOfReasons = (reasons: ByReason): number => Object.values(reasons).reduce((all, count) => all + count, 0);

const addQuarter = (
  sum: Sum,
  { sent, failed, skipped, opened = 0, openedOn, asked, received, dismissed }: Quarter,
  platform: Platform | undefined,
): void => {
  sum.sent += countOn(sent, platform);
  sum.asked += countOn(asked, platform);
  sum.received += countOn(received, platform);
  sum.dismissed += countOn(dismissed, platform);
  addByReason(sum.failures, failed, platform);
  addByReason(sum.skips, skipped, platform);
  sum.opened += platform === undefined ? opened : countOn(openedOn, platform);
};

const figuresOf = ({ sent, opened, failures, skips, asked, received, dismissed }: Sum) => ({
  sent,
  failed: sumOfReasons(failures),
  skipped: sumOfReasons(skips),
  opened,
  receipts_asked: asked,
  received,
  dismissed,
  open_rate: sent === 0 ? null : Math.round((opened / sent) * 10_000) / 10_000,
});

const hasFigures = ({ sent, failed, skipped, opened, received, dismissed }: ReturnType<typeof figuresOf>): boolean =>
  sent + failed + skipped + opened + received + dismissed > 0;

const nothing = (): Sum => ({ sent: 0, opened: 0, asked: 0, received: 0, dismissed: 0, failures: {}, skips: {} });

const addSums = (one: Sum, other: Sum): Sum => {
  const failures = { ...one.failures };
  const skips = { ...one.skips };
  addReasons(failures, other.failures);
  addReasons(skips, other.skips);
  return {
    sent: one.sent + other.sent,
    opened: one.opened + other.opened,
    asked: one.asked + other.asked,
    received: one.received + other.received,
    dismissed: one.dismissed + other.dismissed,
    failures,
    skips,
  };
};

/** The index of the interval that contains a time, otherwise -1. `intervals` are in order and have no gaps. */
const intervalAt = (intervals: readonly Interval[], at: number): number => {
  let low = 0;
  let high = intervals.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((intervals[middle]?.end.getTime() ?? 0) > at) high = middle;
    else low = middle + 1;
  }
  return (intervals[low]?.at.getTime() ?? Number.POSITIVE_INFINITY) <= at ? low : -1;
};

/** Sums the quarters of hours by interval; hours may belong to several notifications. */
export const sumHours = (intervals: readonly Interval[], platform: Platform | undefined) => {
  const sums = intervals.map(nothing);
  const total = nothing();
  return {
    sums,
    total,
    add: ({ hour, quarters = {} }: HourFigures): void => {
      for (const [minute, quarter] of Object.entries(quarters)) {
        const sum = sums[intervalAt(intervals, hour.getTime() + Number(minute) * 60_000)];
        if (sum === undefined) continue;
        addQuarter(sum, quarter, platform);
        addQuarter(total, quarter, platform);
      }
    },
  };
};

type Hours = ReturnType<typeof sumHours>;

/** Sums hours of a range by value. */
export const sumGroups = (range: { readonly from: Date; readonly to: Date }, platform: Platform | undefined) => {
  const whole = [{ at: range.from, end: range.to }];
  const groups = new Map<string, Hours>();
  const other = sumHours(whole, platform);
  return {
    groups,
    other,
    /** `on`: the platform whose figures are added. */
    add: (value: string, hour: HourFigures, on = platform): void => {
      const known = groups.get(value) ?? sumHours(whole, on);
      groups.set(value, known);
      known.add(hour);
    },
  };
};

/** Groups as the API shows them. `named`: values that `other` counts already. */
export const groupsView = (
  { groups, other }: ReturnType<typeof sumGroups>,
  named: readonly string[] = [],
): Pick<Stats, "groups" | "other"> => {
  const sorted = [...groups]
    .map(([value, { total }]) => ({ value, total, ...figuresOf(total) }))
    .filter(hasFigures)
    .toSorted((a, b) => b.sent - a.sent || b.opened - a.opened || (a.value < b.value ? -1 : 1));
  const rest = sorted.slice(maxStatsGroups);
  const sum = rest.reduce((all, { total }) => addSums(all, total), other.total);
  const figures = figuresOf(sum);
  const values = [...new Set([...named, ...rest.map(({ value }) => value)])].slice(0, maxNamed);
  return {
    groups: sorted.slice(0, maxStatsGroups).map(({ total: _, ...group }) => group),
    ...(hasFigures(figures) && { other: { ...figures, values } }),
  };
};

/** Receipts, dismissals and buttons of one notification, as the API shows them. */
export const reportTotals = ({ received, dismissed, buttons }: OpenFigures) => ({
  received: countOn(received),
  dismissed: countOn(dismissed),
  ...(buttons && { buttons: { ...buttons } }),
});

/** All opens of one notification, as the API shows them. */
export const openTotals = ({ first, last, times = {} }: OpenFigures): OpenTotals => {
  const percentiles = timesToOpen(times);
  return {
    ...(first && { first_opened_at: first.toISOString() }),
    ...(last && { last_opened_at: last.toISOString() }),
    ...(percentiles && { time_to_open: percentiles }),
  };
};

export const statsView = (
  { from, to, interval, timeZone, notificationId }: StatsRequest,
  intervals: readonly Interval[],
  { sums, total }: Hours,
  opens: OpenFigures,
): Stats => ({
  from: intervals[0]?.at.toISOString() ?? from,
  to: intervals.at(-1)?.end.toISOString() ?? to,
  interval,
  time_zone: timeZone,
  series: intervals.map(({ at }, index) => ({ at: at.toISOString(), ...figuresOf(sums[index] ?? nothing()) })),
  totals: { ...figuresOf(total), failures: total.failures, skips: total.skips },
  ...(notificationId === undefined ? {} : { notification: { id: notificationId, ...openTotals(opens) } }),
});
