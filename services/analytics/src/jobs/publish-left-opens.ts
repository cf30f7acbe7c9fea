import { type Logger, type Repeating, repeat } from "@herald/kit";
import type { OpenStore } from "../stores/open-store.ts";
import type { EmitOpens } from "./publish-opens.ts";

const everyMs = 5_000;
/** Older than any publish that is still under way. */
const graceMs = 10_000;
const page = 1_000;

/** Finishes what a crash left: opens that are stored and whose event the bus may not have. */
export const sweepOpens = (store: OpenStore, emit: EmitOpens, log: Logger, now: () => Date): Repeating =>
  repeat("emit opens that were left behind", everyMs, log, async (signal) => {
    while (!signal.aborted) {
      const left = await store.findNotEmitted(new Date(now().getTime() - graceMs), page);
      if (left.length === 0) return;
      await emit(left);
      log.info({ opens: left.length }, "emitted opens that were left behind");
    }
  });
