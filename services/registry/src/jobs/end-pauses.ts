import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";

/**
 * Ends the pauses whose `until` has come. Repeatable at any point and by several processes: one of them ends a pause, with one event.
 */
export const endPauses = async ({
  pauses,
  replication,
  publishSoon,
  now,
}: Pick<Deps, "now" | "pauses" | "publishSoon" | "replication">): Promise<void> => {
  const at = now();
  for (const projectId of await pauses.endedBy(at)) {
    // First, so that a crash or an unavailable bus leaves a pause that the next pass finds again.
    await replication.replicateRules(projectId);
    await pauses.end(eventContext(projectId, at));
    // Again, because a process whose clock is late may have written the pause back in between.
    await replication.replicateRules(projectId);
    publishSoon.project(projectId);
  }
};
