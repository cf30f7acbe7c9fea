import {
  type Bus,
  type DeadLetterList,
  getDeadLetter,
  listDeadLetters,
  type ReplayCandidate,
  replayDeadLetter,
} from "@herald/bus";
import {
  type DeliverBatchV1,
  type DueV1,
  type DurableName,
  errors,
  events,
  type NotificationId,
  type Replay,
  replayRequests,
  type SendV1,
} from "@herald/contracts";
import { HeraldError, hasCode, type Logger } from "@herald/kit";
import type { z } from "zod";
import type { ProjectDirectory } from "../auth/directories.ts";
import type { SendRequest } from "../bus-connection.ts";

type Deps = {
  readonly bus: () => Bus;
  readonly sendRequest: SendRequest;
  readonly projects: Pick<ProjectDirectory, "settings">;
  readonly log: Logger;
};

/** The maximum of one request: each replay takes some milliseconds, and an HTTP client waits for all. */
const maxReplays = 100;

/**
 * Lists and replays dead letters. Every function throws bus-unavailable. A list of replays has one result per dead letter; `next` is
 * `after` of the next request, null at the end.
 */
export const createDeadLetters = ({ bus, sendRequest, projects, log }: Deps) => {
  /** Refuses a replay that would change nothing, so that operators do not think it worked. */
  const allow = async ({ letter, message, data }: ReplayCandidate): Promise<void> => {
    if (letter.project_id !== undefined && !(message in events)) {
      await projects.settings(letter.project_id).catch((error: unknown) => {
        if (!(error instanceof HeraldError) || error.code !== "project-not-found") throw error;
        throw new HeraldError("replay-refused", "id: its project no longer exists");
      });
    }
    const request = requestOf(message, data);
    const { settled } = request === undefined ? {} : await sendRequest(replayRequests.check, request);
    if (settled !== undefined)
      throw new HeraldError("replay-refused", `id: a replay would change nothing: ${settled}; send a new notification`);
  };

  const replay = async (id: string, attempt: string): Promise<Replay> => {
    const { letter, understood } = await replayDeadLetter(bus(), id, { attempt, allow });
    const { replays = 1, replayed_at } = letter;
    const details = [
      `published again on ${letter.subject}`,
      ...(replays > 1 ? [`it was replayed ${replays === 2 ? "once" : `${replays - 1} times`} before`] : []),
      ...(understood ? [] : [`its content does not match ${letter.message}, so it will probably fail again`]),
    ];
    return { id, status: "replayed", detail: details.join("; "), replays, replayed_at };
  };

  return {
    list: async (request: DeadLetterList) => listDeadLetters(bus(), request),
    /** Throws dead-letter-not-found. */
    get: async (id: string) => getDeadLetter(bus(), id),
    replay,
    replayMany: async (ids: readonly string[], attempt: string) => ({
      replays: await replayAll([...new Set(ids)], (id) => replay(id, attempt), log),
      next: null,
    }),
    /** Replays the next dead letters of a durable that were never replayed. */
    replayNext: async (durable: DurableName, after: string, attempt: string) => {
      const page = await listDeadLetters(bus(), { by: "key", after, perPage: maxReplays, durable });
      const ids = page.data.filter(({ replays }) => replays === undefined).map(({ id }) => id);
      const replays = await replayAll(ids, (id) => replay(id, attempt), log);
      return { replays, next: "next" in page ? page.next : null };
    },
  };
};

/** The request to dispatch; undefined for messages that finish no delivery. */
const requestOf = (message: string, data: unknown): z.input<typeof replayRequests.check.request> | undefined => {
  if (data === undefined) return undefined;
  switch (message) {
    case "SendV1":
    case "DeliverBatchV1": {
      const { projectId, notificationId, batchId } = data as SendV1 & Partial<DeliverBatchV1>;
      return { projectId, notificationId, message, batchId };
    }
    case "DueV1": {
      const { projectId, kind, id } = data as DueV1;
      if (kind === "activity") return undefined;
      const notificationId = id.split("/", 1)[0] as NotificationId;
      return { projectId, notificationId, message, ...(kind === "batch" ? { batchId: id } : {}) };
    }
    default:
      return undefined;
  }
};

/**
 * Replays in the given order, one at a time, and returns a result for each. When a dependency is unavailable, the remaining replays are not
 * tried. Throws that error only if the first replay failed with it, because otherwise there are results to report.
 */
export const replayAll = async (
  ids: readonly string[],
  /** Throws dead-letter-not-found, replay-refused, service-unavailable. Repeating an `attempt` repeats no replay. */
  replay: (id: string) => Promise<Replay>,
  log: Logger,
): Promise<Replay[]> => {
  const results: Replay[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      results.push(await replay(id));
    } catch (error) {
      if (!(error instanceof HeraldError)) log.error({ err: error, deadLetter: id }, "a replay failed");
      // The next replay would fail too, and each would cost a timeout.
      const unavailable = hasCode(error, "bus-unavailable", "service-unavailable", "database-unavailable");
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
