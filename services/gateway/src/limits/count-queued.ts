import { type Bus, countMessages, sendRequest } from "@herald/bus";
import { CountBacklog, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/**
 * Counts the waiting sends of a project: large ones in the queue of commands, small ones in dispatch's backlog. Undefined when dispatch
 * does not answer. Throws bus-unavailable.
 */
export const createCountQueued =
  (bus: () => Bus, limit: number) =>
  async (projectId: ProjectId): Promise<number | undefined> => {
    const [commands, backlog] = await Promise.all([
      countMessages(bus(), "PUSH_CMD", `push.cmd.v1.*.*.${projectId}.>`),
      sendRequest(bus(), CountBacklog, { projectId, limit }).catch((error: unknown) => {
        if (error instanceof HeraldError && error.code === "service-unavailable") return undefined;
        throw error;
      }),
    ]);
    return backlog && commands + backlog.queued;
  };
