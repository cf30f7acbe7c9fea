import type { NotificationId, ProjectId } from "@herald/contracts";
import type { Contribution, Part } from "./stats-delta.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** Whose figures a rollup has: the project's, one notification's by hour, or all of one notification's. */
export type RollupOf = "project" | `${"hours" | "total"}/${NotificationId}`;

/** What a fold adds to one rollup. */
export type Addition = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly what: RollupOf;
  /** Start of its hour; absent on a total. */
  readonly hour?: Date;
  readonly adds: Map<string, number>;
  /** Whether it is likely to be the first: deliveries of one notification, most of which are to few devices. */
  fresh: boolean;
  first?: Date;
  last?: Date;
};

export const rollupId = (projectId: ProjectId, what: RollupOf, hour?: Date): string =>
  `${projectId}/${what}/${hour === undefined ? "all" : hour.toISOString().slice(0, 13)}`;

const add = (adds: Map<string, number>, path: string, count: number): void => {
  adds.set(path, (adds.get(path) ?? 0) + count);
};

/** Adds up contributions by the rollup they belong to. */
export const foldParts = (contributions: readonly Pick<Contribution, "projectId" | "parts">[]): Addition[] => {
  const additions = new Map<string, Addition>();
  const rollup = (projectId: ProjectId, what: RollupOf, hour?: Date): Addition => {
    const _id = rollupId(projectId, what, hour);
    const known = additions.get(_id);
    if (known) return known;
    const fresh = what.startsWith("hours/");
    const made: Addition = { _id, projectId, what, adds: new Map(), fresh, ...(hour === undefined ? {} : { hour }) };
    additions.set(_id, made);
    return made;
  };
  const foldHours = (projectId: ProjectId, { notificationId, slot, adds, opens }: Part): void => {
    const hour = new Date(Math.floor(slot.getTime() / hourMs) * hourMs);
    const quarter = (slot.getTime() - hour.getTime()) / minuteMs;
    const own = rollup(projectId, `hours/${notificationId}`, hour);
    // It was sent before it was opened, mostly in the same hour.
    if (opens !== undefined) own.fresh = false;
    for (const [path, count] of adds)
      for (const { adds } of [rollup(projectId, "project", hour), own]) add(adds, `quarters.${quarter}.${path}`, count);
  };
  const foldTotal = (projectId: ProjectId, { notificationId, adds, opens }: Part): void => {
    if (opens === undefined) return;
    const total = rollup(projectId, `total/${notificationId}`);
    for (const [path, count] of adds) if (path === "opened") add(total.adds, path, count);
    for (const [bucket, count] of opens.times) add(total.adds, `times.${bucket}`, count);
    if (total.first === undefined || opens.first < total.first) total.first = opens.first;
    if (total.last === undefined || opens.last > total.last) total.last = opens.last;
  };
  for (const { projectId, parts } of contributions) {
    for (const part of parts) {
      if (part.only !== "total") foldHours(projectId, part);
      if (part.only !== "hours") foldTotal(projectId, part);
    }
  }
  return [...additions.values()];
};
