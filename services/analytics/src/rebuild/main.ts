import { createLogger, readConfig } from "@herald/kit";
import { connectMongo } from "@herald/mongo";
import { z } from "zod";
import { AnalyticsConfig } from "../config.ts";
import { foldContributions } from "../jobs/aggregate-stats.ts";
import { rowsCompleteSince } from "../jobs/retention.ts";
import { createNoticeStore } from "../stores/notification-facts-store.ts";
import { createOpenStore } from "../stores/open-store.ts";
import { createRollupStore } from "../stores/rollup-store.ts";
import { createContributionStore } from "../stores/stats-delta-store.ts";
import { rebuildStatistics } from "./rebuild-statistics.ts";

/** `npm run rebuild -w services/analytics`, `node dist/rebuild/main.js` in the image: makes the statistics anew. Needs the database alone, and no analytics beside it. */

const { HERALD_MONGO_URL, HERALD_ANALYTICS_DATABASE, HERALD_LOG_LEVEL } = readConfig(
  z.object(AnalyticsConfig.shape).pick({
    HERALD_MONGO_URL: true,
    HERALD_ANALYTICS_DATABASE: true,
    HERALD_LOG_LEVEL: true,
  }),
  process.env,
);
const log = createLogger({ service: "analytics", level: HERALD_LOG_LEVEL });
const mongo = connectMongo({
  url: HERALD_MONGO_URL,
  database: HERALD_ANALYTICS_DATABASE,
  appName: "herald-analytics-rebuild",
  log,
});
const stores = {
  opens: createOpenStore(mongo.db),
  contributions: createContributionStore(mongo.db),
  rollups: createRollupStore(mongo.db),
  notices: createNoticeStore(mongo.db),
  completeSince: () => rowsCompleteSince(mongo.db),
};
try {
  for (const { ensureIndexes } of [stores.opens, stores.contributions, stores.rollups, stores.notices])
    await ensureIndexes();
  const foldOnce = foldContributions(stores.contributions, stores.rollups, () => new Date());
  await rebuildStatistics(stores, foldOnce, (what) => log.info({ what }, "rebuilding statistics"));
} finally {
  await mongo.close();
}
