import { createLogger, readConfig } from "@herald/kit";
import { connectMongo } from "@herald/mongo";
import { z } from "zod";
import { AnalyticsConfig } from "../config.ts";
import { createStores } from "../stores/create-stores.ts";
import { rebuildStatistics } from "./rebuild-statistics.ts";

/**
 * Rebuilds the statistics: `npm run rebuild -w services/analytics`, or `node dist/rebuild/main.js` in the image. Needs only the database;
 * stop analytics first.
 */

const {
  HERALD_MONGO_URL: url,
  HERALD_ANALYTICS_DATABASE: database,
  HERALD_LOG_LEVEL: level,
} = readConfig(
  z
    .object(AnalyticsConfig.shape)
    .pick({ HERALD_MONGO_URL: true, HERALD_ANALYTICS_DATABASE: true, HERALD_LOG_LEVEL: true }),
  process.env,
);
const log = createLogger({ service: "analytics", level });
const mongo = connectMongo({ url, database, appName: "herald-analytics-rebuild", log });
const stores = createStores(mongo.db);
try {
  for (const { ensureIndexes } of Object.values(stores)) await ensureIndexes();
  await rebuildStatistics(mongo.db, stores, (message) => log.info({ message }, "rebuilding statistics"));
} finally {
  await mongo.close();
}
