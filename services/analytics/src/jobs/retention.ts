import type { RetentionRule } from "@herald/mongo";
import type { AnalyticsConfig } from "../config.ts";
import type { Stores } from "../stores/create-stores.ts";

/** Opens and deltas are removed first; rollups and what they are found by are kept longer. */
export const retentionRules = (
  { opens, deltas, rollups, notificationFacts, tagValues }: Stores,
  config: Pick<AnalyticsConfig, "HERALD_ANALYTICS_RETENTION" | "HERALD_ANALYTICS_STATISTICS_RETENTION">,
): RetentionRule[] => {
  const { HERALD_ANALYTICS_RETENTION: rowsMs, HERALD_ANALYTICS_STATISTICS_RETENTION: figuresMs } = config;
  return [
    { name: "opens", keepMs: rowsMs, removeBatch: opens.removeOld },
    { name: "statsDeltas", keepMs: rowsMs, removeBatch: deltas.removeOld },
    { name: "rollups", keepMs: figuresMs, removeBatch: rollups.removeOld },
    { name: "tagValues", keepMs: figuresMs, removeBatch: (before) => tagValues.removeOld(before, rollups) },
    { name: "notificationFacts", keepMs: figuresMs, removeBatch: notificationFacts.removeOld },
  ];
};
