import { defineHandler } from "@herald/bus";
import { ProjectDeletedV1 } from "@herald/contracts";
import type { OpenStore } from "../stores/open-store.ts";

/** A project is gone, so are its opens. */
export const dropProject = (opens: OpenStore) =>
  defineHandler({
    durable: "analytics-drop-project", // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency: 1,
    async handle({ data, signal }) {
      while (await opens.removePage(data.projectId)) signal.throwIfAborted();
    },
  });
