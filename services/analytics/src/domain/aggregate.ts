import type { NotificationId, ProjectId, Tag } from "@herald/contracts";
import { unitMs } from "./intervals.ts";
import { addCount, type Increment, isInTotal, type StatsDelta } from "./stats-delta.ts";
import { type Dimension, fieldOfValue, partsOf } from "./tags.ts";

/** A kind, a value of a label, or all values of a dimension beyond its limit. */
export type TagScope = Tag | `other/${string}`;

/**
 * What a rollup covers: one hour of a project, notification or tag; one hour or day of all values of a dimension, so that few rollups
 * cover a month; or all reports of a notification.
 */
export type RollupScope =
  | "project"
  | `${"hours" | "total"}/${NotificationId}`
  | TagScope
  | `${"hour" | "day"}/${Dimension}`;

/** The counts that an aggregation run adds to one rollup. */
export type RollupChange = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly scope: RollupScope;
  /** Start of its hour or day (UTC); absent on a total. */
  readonly hour?: Date;
  readonly adds: Map<string, number>;
  first?: Date;
  last?: Date;
};

export const rollupId = (projectId: ProjectId, scope: RollupScope, hour?: Date): string =>
  `${projectId}/${scope}/${hour === undefined ? "all" : textOf(hour)}`;

/** The hour of the last rollup: thousands in a row have the same, and its text costs more than all the rest of their ids. */
let last = { time: Number.NaN, text: "" };
const textOf = (hour: Date): string => {
  const time = hour.getTime();
  if (time !== last.time) last = { time, text: hour.toISOString().slice(0, 13) };
  return last.text;
};

const startOf = (at: Date, unit: number): Date => new Date(Math.floor(at.getTime() / unit) * unit);

/** Sums deltas by rollup. `scopeOf`: the scope that counts a tag. */
export const aggregateDeltas = (
  deltas: readonly Pick<StatsDelta, "projectId" | "increments">[],
  scopeOf: (projectId: ProjectId, tag: Tag, at: Date) => TagScope,
): RollupChange[] => {
  const changes = new Map<string, RollupChange>();
  const rollup = (projectId: ProjectId, scope: RollupScope, hour?: Date): RollupChange => {
    const _id = rollupId(projectId, scope, hour);
    const known = changes.get(_id);
    if (known) return known;
    const created: RollupChange = { _id, projectId, scope, adds: new Map(), ...(hour && { hour }) };
    changes.set(_id, created);
    return created;
  };
  const addFigures = ({ adds }: RollupChange, path: string, increment: Increment): void => {
    for (const [name, count] of increment.adds) addCount(adds, `${path}.${name}`, count);
  };
  /** Adds to the hours of the scopes. `slot`: the start of a quarter, which is a field of its hour by its minute. */
  const addHours = (projectId: ProjectId, scopes: Iterable<RollupScope>, increment: Increment): void => {
    const { slot } = increment;
    for (const scope of scopes)
      addFigures(rollup(projectId, scope, startOf(slot, unitMs.hour)), `quarters.${slot.getUTCMinutes()}`, increment);
  };
  const addTags = (projectId: ProjectId, tags: readonly Tag[], increment: Increment): void => {
    const { slot } = increment;
    // Several labels beyond the limit share one scope, which counts a device once.
    const scopes = new Set(tags.map((tag) => scopeOf(projectId, tag, slot)));
    addHours(projectId, scopes, increment);
    for (const scope of scopes) {
      if (scope.startsWith("other/")) continue;
      const { dimension, value } = partsOf(scope as Tag);
      const path = `values.${fieldOfValue(value)}`;
      for (const unit of ["hour", "day"] as const)
        addFigures(rollup(projectId, `${unit}/${dimension}`, startOf(slot, unitMs[unit])), path, increment);
    }
  };
  const addTotal = (projectId: ProjectId, { notificationId, adds, opens }: Increment): void => {
    const counted = adds.filter(([path]) => isInTotal(path));
    if (counted.length === 0) return;
    const total = rollup(projectId, `total/${notificationId}`);
    for (const [path, count] of counted) addCount(total.adds, path, count);
    if (opens === undefined) return;
    for (const [bucket, count] of opens.times) addCount(total.adds, `times.${bucket}`, count);
    if (total.first === undefined || opens.first < total.first) total.first = opens.first;
    if (total.last === undefined || opens.last > total.last) total.last = opens.last;
  };
  for (const { projectId, increments } of deltas) {
    for (const increment of increments) {
      const { only, tags } = increment;
      if (only === undefined || only === "hours")
        addHours(projectId, ["project", `hours/${increment.notificationId}`], increment);
      if (only === undefined || only === "total") addTotal(projectId, increment);
      if (tags !== undefined && (only === undefined || only === "tags")) addTags(projectId, tags, increment);
    }
  }
  return [...changes.values()];
};
