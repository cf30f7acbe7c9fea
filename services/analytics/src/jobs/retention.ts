import { type MongoHandle, type RetentionRule, removedBefore } from "@herald/mongo";
import type { AnalyticsConfig } from "../config.ts";
import type { NoticeStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";
import type { ContributionStore } from "../stores/stats-delta-store.ts";

/** An open is never there longer than the report that counted it, whose time is the quarter of an hour that it is in. */
const marginMs = 3_600_000;

type Stores = {
  readonly opens: Pick<OpenStore, "removeOld">;
  readonly contributions: Pick<ContributionStore, "removeOld">;
  readonly rollups: Pick<RollupStore, "removeOld">;
  readonly notices: Pick<NoticeStore, "removeOld">;
};

/** The rows that statistics are made of go first; the figures that they went into, and what those are looked up by, stay longer. */
export const retentionRules = (
  { opens, contributions, rollups, notices }: Stores,
  config: Pick<AnalyticsConfig, "HERALD_ANALYTICS_RETENTION" | "HERALD_ANALYTICS_STATISTICS_RETENTION">,
): RetentionRule[] => {
  const rowsMs = config.HERALD_ANALYTICS_RETENTION;
  const figuresMs = config.HERALD_ANALYTICS_STATISTICS_RETENTION;
  return [
    { name: "opens", keepMs: rowsMs, removeBatch: opens.removeOld },
    { name: "contributions", keepMs: rowsMs + marginMs, removeBatch: contributions.removeOld },
    { name: "rollups", keepMs: figuresMs, removeBatch: rollups.removeOld },
    { name: "notices", keepMs: figuresMs, removeBatch: notices.removeOld },
  ];
};

/** From when on all rows that statistics are made of are there: undefined where none was ever removed. */
export const rowsCompleteSince = async (db: MongoHandle["db"]): Promise<Date | undefined> => {
  const [opens, contributions] = await Promise.all(["opens", "contributions"].map((rule) => removedBefore(db, rule)));
  const margined = contributions && new Date(contributions.getTime() + marginMs);
  return opens === undefined || (margined !== undefined && margined > opens) ? margined : opens;
};
