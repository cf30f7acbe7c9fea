import { defineHandler } from "@herald/bus";
import { ProjectDeletedV1, type ProjectId } from "@herald/contracts";

/** Removes everything that analytics stores of a deleted project. */
export const deleteProject = (stores: readonly { removePage: (projectId: ProjectId) => Promise<boolean> }[]) =>
  defineHandler({
    durable: "analytics-delete-project", // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency: 1,
    async handle({ data, signal }) {
      for (const { removePage } of stores) while (await removePage(data.project_id)) signal.throwIfAborted();
    },
  });
