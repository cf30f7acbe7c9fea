import type { Db } from "mongodb";
import { createNotificationFactsStore } from "./notification-facts-store.ts";
import { createOpenStore } from "./open-store.ts";
import { createRollupStore } from "./rollup-store.ts";
import { createStatsDeltaStore } from "./stats-delta-store.ts";
import { createTagValueStore } from "./tag-value-store.ts";

/** Opens and statistics. */
export type Stores = ReturnType<typeof createStores>;

export const createStores = (db: Db) => ({
  opens: createOpenStore(db),
  deltas: createStatsDeltaStore(db),
  rollups: createRollupStore(db),
  notificationFacts: createNotificationFactsStore(db),
  tagValues: createTagValueStore(db),
});
