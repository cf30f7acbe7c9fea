import { createLogger } from "@herald/kit";
import type { Db } from "mongodb";
import { deviceCollection } from "../src/stores/device-store.ts";
import { createPendingEvents } from "../src/stores/pending-events.ts";

/** Pending events for tests with a database but no broker. */
export const pendingOf = (db: Db) =>
  createPendingEvents(db, deviceCollection(db), {
    publish: () => Promise.reject(new Error("there is no broker")),
    publishMany: () => Promise.reject(new Error("there is no broker")),
    now: () => new Date(),
    log: createLogger({ service: "test", level: "silent" }),
  });
