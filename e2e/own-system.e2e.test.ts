import { afterAll, beforeAll, describe } from "vitest";
import { type Collector, startCollector } from "./harness/collector.ts";
import { movableClock } from "./harness/movable-clock.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";
import { testActivityEnds } from "./own-system/activity-ends.ts";
import { testDatabaseCommands } from "./own-system/database-commands.ts";
import { testLocalTime } from "./own-system/local-time.ts";
import type { OwnSystem } from "./own-system/own-system.ts";
import { testTelemetry } from "./own-system/telemetry.ts";

/** The tests that the shared system cannot run share this one, one after another: a system costs ten seconds of CPU time. */
const clock = movableClock();
let collector: Collector;
let system: System;
beforeAll(async () => {
  collector = await startCollector();
  system = await startSystem({ env: { ...collector.env, ...clock.env, HERALD_LOG_LEVEL: "trace" } });
});
afterAll(async () => {
  await system?.stop();
  await collector?.stop();
});
logOnFailure(() => system);
const own = (): OwnSystem => ({ system, collector, clock });

describe("telemetry", () => testTelemetry(own));
describe("database commands", () => testDatabaseCommands(own));
// They move the clock, so they come last.
describe("activities", () => testActivityEnds(own));
describe("local time", () => testLocalTime(own));
