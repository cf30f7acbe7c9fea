import { type ErrorCode, errors, type Replay } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";

/** With these away the next one would fare no better, and each would be waited for. */
const hopeless: readonly ErrorCode[] = ["bus-unavailable", "service-unavailable", "database-unavailable"];

/**
 * Replays one after the other, oldest first as they are given, and answers each. Once something is unavailable the rest is not tried;
 * throws only when that was so from the first on, so that nothing that happened goes untold.
 */
export const replayAll = async (
  ids: readonly string[],
  replay: (id: string) => Promise<Replay>,
  log: Logger,
): Promise<Replay[]> => {
  const answers: Replay[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      answers.push(await replay(id));
    } catch (error) {
      if (!(error instanceof HeraldError)) log.error({ err: error, deadLetter: id }, "a replay failed");
      const away = error instanceof HeraldError && hopeless.includes(error.code);
      if (away && index === 0) throw error;
      answers.push({ id, ...explain(error) });
      if (!away) continue;
      answers.push(
        ...ids.slice(index + 1).map((rest) => ({ id: rest, status: "failed" as const, detail: "not tried" })),
      );
      break;
    }
  }
  return answers;
};

const explain = (error: unknown): Pick<Replay, "status" | "detail"> => {
  if (!(error instanceof HeraldError)) return { status: "failed", detail: errors.internal.title };
  const detail = error.faults.map((fault) => fault.detail).join("; ");
  if (error.code === "dead-letter-not-found") return { status: "not-found", detail };
  return { status: error.code === "replay-refused" ? "refused" : "failed", detail };
};
