import { type MongoHandle, type RetentionRule, readRetentionMark } from "@herald/mongo";
import type { AnalyticsConfig } from "../config.ts";
import type { Stores } from "../stores/create-stores.ts";

/** Deltas are dated by the start of a quarter of an hour and must outlive the opens that they count. */
const marginMs = 3_600_000;

/** Opens and deltas are removed first; rollups and what they are found by are kept longer. */
export const retentionRules = (
  { opens, deltas, rollups, notificationFacts, tagValues }: Stores,
  config: Pick<AnalyticsConfig, "HERALD_ANALYTICS_RETENTION" | "HERALD_ANALYTICS_STATISTICS_RETENTION">,
): RetentionRule[] => {
  const { HERALD_ANALYTICS_RETENTION: rowsMs, HERALD_ANALYTICS_STATISTICS_RETENTION: figuresMs } = config;
  return [
    { name: "opens", keepMs: rowsMs, removeBatch: opens.removeOld },
    { name: "statsDeltas", keepMs: rowsMs + marginMs, removeBatch: deltas.removeOld },
    { name: "rollups", keepMs: figuresMs, removeBatch: rollups.removeOld },
    { name: "tagValues", keepMs: figuresMs, removeBatch: (before) => tagValues.removeOld(before, rollups) },
    { name: "notificationFacts", keepMs: figuresMs, removeBatch: notificationFacts.removeOld },
  ];
};

/** Retention has removed no rows of statistics since this time; undefined: it never removed any. */
export const retentionMark = async (db: MongoHandle["db"]): Promise<Date | undefined> => {
  const [opens, deltas] = await Promise.all(["opens", "statsDeltas"].map((rule) => readRetentionMark(db, rule)));
  const margined = deltas && new Date(deltas.getTime() + marginMs);
  return opens === undefined || (margined !== undefined && margined > opens) ? margined : opens;
};
