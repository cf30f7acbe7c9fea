import type { ProjectId } from "@herald/contracts";
import { LRUCache } from "@herald/kit";
import type { Collection } from "mongodb";
import { zonesOfFacets } from "../domain/facets.ts";
import type { ProjectDocument } from "./project-store.ts";

/** Projects whose zones a process remembers. */
const maxProjects = 10_000;

type Zoned = { readonly projectId: ProjectId; readonly facets: readonly string[] };

export type ZoneList = ReturnType<typeof createZoneList>;

/**
 * Lists in a project the time zones that its devices have, each before the first device that has it. So a send by local time that reads the
 * list misses no device. A zone stays listed; there are some 400.
 */
export const createZoneList = (projects: Collection<ProjectDocument>) => {
  const listed = new LRUCache<ProjectId, ReadonlySet<string>>({ max: maxProjects });

  const add = async (projectId: ProjectId, zones: ReadonlySet<string>): Promise<void> => {
    const known = listed.get(projectId) ?? new Set();
    const missing = [...zones].filter((zone) => !known.has(zone)).sort();
    if (missing.length === 0) return;
    await projects.updateOne({ _id: projectId }, { $addToSet: { zones: { $each: missing } } });
    listed.set(projectId, new Set([...(listed.get(projectId) ?? []), ...zones]));
  };

  return async (devices: readonly Zoned[]): Promise<void> => {
    for (const [projectId, some] of Map.groupBy(devices, (device) => device.projectId))
      await add(projectId, new Set(some.flatMap(({ facets }) => zonesOfFacets(facets))));
  };
};
