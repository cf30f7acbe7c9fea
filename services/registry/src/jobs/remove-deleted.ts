import type { Deps } from "../deps.ts";
import type { ProjectDocument } from "../stores/project-store.ts";
import type { TopicDocument } from "../stores/topic-store.ts";

/** Deletions per pass, oldest first; the next pass removes the others. */
const maxDeletions = 100;
/** Rows per command: 20 ms to remove, 150 ms to change. */
const pageSize = 1_000;

type RemoveTopicDeps = Pick<Deps, "devices" | "now" | "publishSoon" | "topics">;
type RemoveDeps = RemoveTopicDeps &
  Pick<Deps, "erasures" | "imports" | "projects" | "replication" | "templates" | "userPreferences">;

/** Repeats `removePage` until nothing is left. False when the signal ended it early. */
const removeAll = async (removePage: () => Promise<number>, signal: AbortSignal): Promise<boolean> => {
  for (let removed = pageSize; removed > 0; removed = await removePage()) if (signal.aborted) return false;
  return true;
};

/** Ends the subscriptions to a topic that is marked as deleted, then frees its name. Repeatable at any point and by several processes. */
export const removeTopic = async (
  { devices, topics, publishSoon, now }: RemoveTopicDeps,
  { projectId, _id, name, sweptAt }: TopicDocument,
  signal: AbortSignal,
): Promise<void> => {
  const unsubscribe = () => devices.unsubscribeSome(projectId, name, pageSize);
  if (sweptAt === undefined && !(await removeAll(unsubscribe, signal))) return;
  await topics.finishDeletion(projectId, _id, now());
  publishSoon.topics(projectId, [_id]);
};

/**
 * Removes the data of a deleted project. Repeatable at any point and by several processes. The project itself is removed `lingerMs`
 * after its deletion, because requests that began before may still write.
 */
const removeProject = async (
  deps: RemoveDeps,
  project: ProjectDocument,
  lingerMs: number,
  signal: AbortSignal,
): Promise<void> => {
  const { devices, topics, templates, imports, userPreferences, projects, erasures, publishSoon, replication, now } =
    deps;
  const { _id, deletedAt } = project;
  await replication.replicate(project);
  for (const { removePage } of [devices, topics, templates, imports, userPreferences])
    if (!(await removeAll(() => removePage(_id, pageSize), signal))) return;
  await erasures.removeProject(_id);
  publishSoon.project(_id);
  if (deletedAt !== undefined && now().getTime() - deletedAt.getTime() >= lingerMs) await projects.remove(_id);
};

/** Continues every deletion that a crash, a deadline or its size interrupted. */
export const removeDeleted = async (deps: RemoveDeps, lingerMs: number, signal: AbortSignal): Promise<void> => {
  for (const topic of await deps.topics.deleting(maxDeletions))
    if (!signal.aborted) await removeTopic(deps, topic, signal);
  for (const project of await deps.projects.deleted(maxDeletions))
    if (!signal.aborted) await removeProject(deps, project, lingerMs, signal);
};
