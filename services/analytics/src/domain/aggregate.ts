import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Increment, StatsDelta } from "./stats-delta.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** What a rollup covers: a project by hour, a notification by hour, or all opens of a notification. */
export type RollupScope = "project" | `${"hours" | "total"}/${NotificationId}`;

/** What an aggregation run adds to one rollup. */
export type RollupChange = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly scope: RollupScope;
  /** Start of its hour; absent on a total. */
  readonly hour?: Date;
  readonly adds: Map<string, number>;
  /** The rollup probably does not exist yet: most notifications go to few devices and are delivered at once. */
  isNew: boolean;
  first?: Date;
  last?: Date;
};

export const rollupId = (projectId: ProjectId, scope: RollupScope, hour?: Date): string =>
  `${projectId}/${scope}/${hour === undefined ? "all" : hour.toISOString().slice(0, 13)}`;

const add = (adds: Map<string, number>, path: string, count: number): void => {
  adds.set(path, (adds.get(path) ?? 0) + count);
};

export const aggregateDeltas = (deltas: readonly Pick<StatsDelta, "projectId" | "increments">[]): RollupChange[] => {
  const changes = new Map<string, RollupChange>();
  const rollup = (projectId: ProjectId, scope: RollupScope, hour?: Date): RollupChange => {
    const _id = rollupId(projectId, scope, hour);
    const known = changes.get(_id);
    if (known) return known;
    const isNew = scope.startsWith("hours/");
    const created: RollupChange = { _id, projectId, scope, adds: new Map(), isNew, ...(hour && { hour }) };
    changes.set(_id, created);
    return created;
  };
  const addHours = (projectId: ProjectId, { notificationId, slot, adds, opens }: Increment): void => {
    const hour = new Date(Math.floor(slot.getTime() / hourMs) * hourMs);
    const quarter = (slot.getTime() - hour.getTime()) / minuteMs;
    const own = rollup(projectId, `hours/${notificationId}`, hour);
    // Most opens come in the hour of the send, whose rollup exists.
    if (opens !== undefined) own.isNew = false;
    for (const [path, count] of adds)
      for (const { adds } of [rollup(projectId, "project", hour), own]) add(adds, `quarters.${quarter}.${path}`, count);
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
      if (increment.only !== "total") addHours(projectId, increment);
      if (increment.only !== "hours") addTotal(projectId, increment);
    }
  }
  return [...changes.values()];
};
