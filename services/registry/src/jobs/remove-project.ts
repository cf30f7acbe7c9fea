import type { ErasureStore } from "@herald/mongo";
import type { DeviceStore } from "../stores/device-store.ts";
import type { ProjectDocument, ProjectStore } from "../stores/project-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import type { TopicStore } from "../stores/topic-store.ts";
import type { KnownProjects } from "./replicate-projects.ts";

export type EndProjectParts = {
  readonly devices: DeviceStore;
  readonly topics: TopicStore;
  readonly projects: ProjectStore;
  readonly erasures: ErasureStore;
  readonly announce: Announce;
  readonly knownProjects: KnownProjects;
  readonly now: () => Date;
};

/** A removal of so many takes some 20 ms. */
const atATime = 1_000;

/**
 * Removes what a project had that is marked as deleted. Repeatable at any point, by several at once. The project itself goes
 * `lingerMs` after its deletion: until then a request that had begun before may still leave something.
 */
export const endProject = async (
  { devices, topics, projects, erasures, announce, knownProjects, now }: EndProjectParts,
  project: ProjectDocument,
  { lingerMs, signal }: { lingerMs: number; signal: AbortSignal },
): Promise<void> => {
  const { _id, deletedAt } = project;
  await knownProjects.tellAll(project);
  for (const { removeSome } of [devices, topics])
    for (let removed = atATime; removed > 0; ) {
      if (signal.aborted) return;
      removed = await removeSome(_id, atATime);
    }
  await erasures.removeProject(_id);
  announce.project(_id);
  if (deletedAt !== undefined && now().getTime() - deletedAt.getTime() >= lingerMs) await projects.remove(_id);
};
