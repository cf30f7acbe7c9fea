import { type DeviceId, type ProjectId, parseDuration } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";

const projectsAtATime = 100;
const devicesAtATime = 500;

/**
 * Deactivates the devices that were not seen for their project's `stale_after`. Repeatable at any point and by several processes. Resolves
 * to the number of deactivated devices.
 */
export const retireStaleDevices = async (
  { projects, devices, publishSoon, now }: Pick<Deps, "projects" | "devices" | "publishSoon" | "now">,
  signal: AbortSignal,
): Promise<number> => {
  let retired = 0;
  const retireOf = async (projectId: ProjectId, before: Date): Promise<void> => {
    let after: DeviceId | undefined;
    while (!signal.aborted) {
      const ids = await devices.findStale(projectId, { before, after, limit: devicesAtATime });
      if (ids.length === 0) return;
      retired += await devices.retireStale(eventContext(projectId, now()), ids, before);
      publishSoon.devices(projectId, ids);
      after = ids.at(-1);
    }
  };
  for (let last: ProjectId | undefined; !signal.aborted; ) {
    const some = await projects.after(last, projectsAtATime);
    for (const { _id, staleAfter, deletedAt } of some) {
      const silentMs = staleAfter ? parseDuration(staleAfter) : undefined;
      if (silentMs === undefined || deletedAt !== undefined) continue;
      await retireOf(_id, new Date(now().getTime() - silentMs));
    }
    last = some.at(-1)?._id;
    if (last === undefined) break;
  }
  return retired;
};
