import { type EndProjectParts, endProject } from "./remove-project.ts";
import { endTopic } from "./remove-topic.ts";

/** Deletions under way that are looked at in one pass: the oldest first, the others in the next. */
const most = 100;

/** Goes on with every deletion that a crash, a deadline or its size left unfinished. */
export const removeDeleted = async (parts: EndProjectParts, lingerMs: number, signal: AbortSignal): Promise<void> => {
  for (const topic of await parts.topics.deleting(most)) {
    if (signal.aborted) return;
    await endTopic(parts, topic, signal);
  }
  for (const project of await parts.projects.deleted(most)) {
    if (signal.aborted) return;
    await endProject(parts, project, { lingerMs, signal });
  }
};
