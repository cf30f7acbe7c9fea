import { type ErrorCode, errors, type Replay } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";

/** After these errors the next replay would fail too, and each would cost a timeout. */
const unavailableCodes: readonly ErrorCode[] = ["bus-unavailable", "service-unavailable", "database-unavailable"];

/**
 * Replays one after the other in the given order, and returns a result for each. When a dependency is unavailable, the rest is not
 * tried; throws only if the first replay failed so, because later ones have results to report.
 */
export const replayAll = async (
  ids: readonly string[],
  replay: (id: string) => Promise<Replay>,
  log: Logger,
): Promise<Replay[]> => {
  const results: Replay[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      results.push(await replay(id));
    } catch (error) {
      if (!(error instanceof HeraldError)) log.error({ err: error, deadLetter: id }, "a replay failed");
      const unavailable = error instanceof HeraldError && unavailableCodes.includes(error.code);
      if (unavailable && index === 0) throw error;
      results.push({ id, ...explain(error) });
      if (!unavailable) continue;
      results.push(
        ...ids.slice(index + 1).map((rest) => ({ id: rest, status: "failed" as const, detail: "not tried" })),
      );
      break;
    }
  }
  return results;
};

const explain = (error: unknown): Pick<Replay, "status" | "detail"> => {
  if (!(error instanceof HeraldError)) return { status: "failed", detail: errors.internal.title };
  const detail = error.faults.map((fault) => fault.detail).join("; ");
  if (error.code === "dead-letter-not-found") return { status: "not-found", detail };
  return { status: error.code === "replay-refused" ? "refused" : "failed", detail };
};
