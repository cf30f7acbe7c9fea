import type { RetentionRule } from "@herald/mongo";
import type { Db } from "mongodb";
import type { AnalyticsConfig } from "../config.ts";
import { createNotificationFactsStore } from "./notification-facts-store.ts";
import { createReportStore } from "./report-store.ts";
import { createRollupStore } from "./rollup-store.ts";
import { createStatsDeltaStore } from "./stats-delta-store.ts";
import { createTagValueStore } from "./tag-value-store.ts";

/** Opens, receipts and statistics. */
export type Stores = ReturnType<typeof createStores>;

export const createStores = (db: Db) => ({
  opens: createReportStore(db, "opens"),
  receipts: createReportStore(db, "receipts"),
  deltas: createStatsDeltaStore(db),
  rollups: createRollupStore(db),
  notificationFacts: createNotificationFactsStore(db),
  tagValues: createTagValueStore(db),
});

/** Opens, receipts and deltas are removed first; rollups and the data that finds them are kept longer. */
export const retentionRules = (
  { opens, receipts, deltas, rollups, notificationFacts, tagValues }: Stores,
  config: Pick<AnalyticsConfig, "HERALD_ANALYTICS_RETENTION" | "HERALD_ANALYTICS_STATISTICS_RETENTION">,
): RetentionRule[] => {
  const { HERALD_ANALYTICS_RETENTION: rowsMs, HERALD_ANALYTICS_STATISTICS_RETENTION: figuresMs } = config;
  return [
    { name: "opens", keepMs: rowsMs, removeBatch: opens.removeOld },
    { name: "receipts", keepMs: rowsMs, removeBatch: receipts.removeOld },
    { name: "statsDeltas", keepMs: rowsMs, removeBatch: deltas.removeOld },
    { name: "rollups", keepMs: figuresMs, removeBatch: rollups.removeOld },
    { name: "tagValues", keepMs: figuresMs, removeBatch: (before) => tagValues.removeOld(before, rollups) },
    { name: "notificationFacts", keepMs: figuresMs, removeBatch: notificationFacts.removeOld },
  ];
};
