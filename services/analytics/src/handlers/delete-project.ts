import { defineHandler } from "@herald/bus";
import { ProjectDeletedV1, type ProjectId } from "@herald/contracts";

/** Removes a page of what a project has; false when nothing is left. */
type RemovePage = (projectId: ProjectId) => Promise<boolean>;

/** A project is gone, so are its opens and its statistics. */
export const deleteProject = (stores: readonly { readonly removePage: RemovePage }[]) =>
  defineHandler({
    durable: "analytics-delete-project", // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency: 1,
    async handle({ data, signal }) {
      for (const { removePage } of stores) while (await removePage(data.project_id)) signal.throwIfAborted();
    },
  });
