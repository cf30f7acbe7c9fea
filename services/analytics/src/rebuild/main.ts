import { createLogger, databaseOf, readConfig } from "@herald/kit";
import { connectMongo } from "@herald/mongo";
import { z } from "zod";
import { AnalyticsConfig } from "../config.ts";
import { createStores } from "../stores/create-stores.ts";
import { rebuildStatistics } from "./rebuild-statistics.ts";

/**
 * Rebuilds the statistics: `npm run rebuild -w services/analytics`, or `node app/dist/rebuild/main.js` in the image. Needs only the database;
 * stop analytics first.
 */

const config = readConfig(
  z
    .object(AnalyticsConfig.shape)
    .pick({ HERALD_MONGO_URL: true, HERALD_DATABASE_PREFIX: true, HERALD_LOG_LEVEL: true }),
  process.env,
);
const log = createLogger({ service: "analytics", level: config.HERALD_LOG_LEVEL });
const database = databaseOf(config, "analytics");
const mongo = connectMongo({ url: config.HERALD_MONGO_URL, database, appName: "herald-analytics-rebuild", log });
const stores = createStores(mongo.db);
try {
  for (const { ensureIndexes } of Object.values(stores)) await ensureIndexes();
  await rebuildStatistics(mongo.db, stores, (message) => log.info({ message }, "rebuilding statistics"));
} finally {
  await mongo.close();
}
