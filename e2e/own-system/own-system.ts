import type { Collector } from "../harness/collector.ts";
import type { MovableClock } from "../harness/movable-clock.ts";
import type { System } from "../harness/system.ts";

/** A system with another environment than the shared one: it exports spans, writes all log lines, and has a clock that tests move. */
export type OwnSystem = { readonly system: System; readonly collector: Collector; readonly clock: MovableClock };
