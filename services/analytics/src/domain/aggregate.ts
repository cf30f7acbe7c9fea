import type { NotificationId, ProjectId, Tag } from "@herald/contracts";
import type { Increment, StatsDelta } from "./stats-delta.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/**
 * What a rollup covers: by hour a project, a notification, a kind, a label's value, or the values beyond the limit of one of the two; or
 * all opens of a notification.
 */
export type RollupScope = "project" | `${"hours" | "total"}/${NotificationId}` | Tag | `other/${string}`;

/** What an aggregation run adds to one rollup. */
export type RollupChange = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly scope: RollupScope;
  /** Start of its hour; absent on a total. */
  readonly hour?: Date;
  readonly adds: Map<string, number>;
  first?: Date;
  last?: Date;
};

export const rollupId = (projectId: ProjectId, scope: RollupScope, hour?: Date): string =>
  `${projectId}/${scope}/${hour === undefined ? "all" : hour.toISOString().slice(0, 13)}`;

const add = (adds: Map<string, number>, path: string, count: number): void => {
  adds.set(path, (adds.get(path) ?? 0) + count);
};

/** `scopeOf` says which scope counts a tag. */
export const aggregateDeltas = (
  deltas: readonly Pick<StatsDelta, "projectId" | "increments">[],
  scopeOf: (projectId: ProjectId, tag: Tag, at: Date) => RollupScope,
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
  const addQuarter = ({ slot, adds }: Increment, hour: Date, rollups: readonly RollupChange[]): void => {
    const quarter = (slot.getTime() - hour.getTime()) / minuteMs;
    for (const [path, count] of adds) for (const { adds } of rollups) add(adds, `quarters.${quarter}.${path}`, count);
  };
  const addHours = (projectId: ProjectId, increment: Increment, hour: Date): void => {
    const own = rollup(projectId, `hours/${increment.notificationId}`, hour);
    addQuarter(increment, hour, [rollup(projectId, "project", hour), own]);
  };
  const addTags = (projectId: ProjectId, increment: Increment, hour: Date): void => {
    if (increment.tags === undefined) return;
    // Several labels beyond the limit are one scope, which counts a device once.
    const scopes = new Set(increment.tags.map((tag) => scopeOf(projectId, tag, increment.slot)));
    addQuarter(
      increment,
      hour,
      [...scopes].map((scope) => rollup(projectId, scope, hour)),
    );
  };
  const addTotal = (projectId: ProjectId, { notificationId, adds, opens }: Increment): void => {
    if (opens === undefined) return;
    const total = rollup(projectId, `total/${notificationId}`);
    for (const [path, count] of adds) if (path === "opened") add(total.adds, path, count);
    for (const [bucket, count] of opens.times) add(total.adds, `times.${bucket}`, count);
    if (total.first === undefined || opens.first < total.first) total.first = opens.first;
    if (total.last === undefined || opens.last > total.last) total.last = opens.last;
  };
  for (const { projectId, increments } of deltas) {
    for (const increment of increments) {
      const hour = new Date(Math.floor(increment.slot.getTime() / hourMs) * hourMs);
      const { only } = increment;
      if (only === undefined || only === "hours") addHours(projectId, increment, hour);
      if (only === undefined || only === "total") addTotal(projectId, increment);
      if (only === undefined || only === "tags") addTags(projectId, increment, hour);
    }
  }
  return [...changes.values()];
};
