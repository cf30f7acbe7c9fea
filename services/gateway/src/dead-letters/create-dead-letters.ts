import { type Bus, getDeadLetter, listDeadLetters, type ReplayCandidate, replayDeadLetter } from "@herald/bus";
import {
  type DeliverBatchV1,
  type DueV1,
  events,
  JudgeReplay,
  type NotificationId,
  type Replay,
  type SendV1,
} from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import type { z } from "zod";
import type { SendRequest } from "../deps.ts";
import type { ProjectDirectory } from "../records/project-directory.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { replayAll } from "./replay-all.ts";

type Deps = {
  readonly bus: () => Bus;
  readonly sendRequest: SendRequest;
  readonly projects: Pick<ProjectDirectory, "settings">;
  readonly log: Logger;
};

/** The most that one request replays: each takes some milliseconds, and an HTTP client waits for all. */
const maxReplays = 100;

export const createDeadLetters = ({ bus, sendRequest, projects, log }: Deps): DeadLetters => {
  /** Refuses a replay that would change nothing, so that operators do not believe that it worked. */
  const allow = async ({ letter, message, data }: ReplayCandidate): Promise<void> => {
    if (letter.project_id !== undefined && !(message in events)) {
      await projects.settings(letter.project_id).catch((error: unknown) => {
        if (!(error instanceof HeraldError) || error.code !== "project-not-found") throw error;
        throw new HeraldError("replay-refused", "id: its project no longer exists");
      });
    }
    const request = requestOf(message, data);
    const { settled } = request === undefined ? {} : await sendRequest(JudgeReplay, request);
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
    return {
      id,
      status: "replayed",
      detail: details.join("; "),
      replays,
      ...(replayed_at === undefined ? {} : { replayed_at }),
    };
  };

  return {
    list: async (request) => listDeadLetters(bus(), request),
    get: async (id) => getDeadLetter(bus(), id),
    replay,
    replayMany: async (ids, attempt) => ({
      replays: await replayAll([...new Set(ids)], (id) => replay(id, attempt), log),
      next: null,
    }),
    replayNext: async (durable, after, attempt) => {
      const page = await listDeadLetters(bus(), { by: "key", after, perPage: maxReplays, durable });
      const ids = page.data.filter(({ replays }) => replays === undefined).map(({ id }) => id);
      const replays = await replayAll(ids, (id) => replay(id, attempt), log);
      return { replays, next: "next" in page ? page.next : null };
    },
  };
};

/** The request to dispatch; undefined for messages that finish no delivery. */
const requestOf = (message: string, data: unknown): z.input<typeof JudgeReplay.request> | undefined => {
  if (data === undefined) return undefined;
  switch (message) {
    case "SendV1": {
      const { projectId, notificationId } = data as SendV1;
      return { projectId, notificationId, message };
    }
    case "DeliverBatchV1": {
      const { projectId, notificationId, batchId } = data as DeliverBatchV1;
      return { projectId, notificationId, message, batchId };
    }
    case "DueV1": {
      const { projectId, kind, id } = data as DueV1;
      const notificationId = id.split("/", 1)[0] as NotificationId;
      return { projectId, notificationId, message, ...(kind === "batch" ? { batchId: id } : {}) };
    }
    default:
      return undefined;
  }
};
