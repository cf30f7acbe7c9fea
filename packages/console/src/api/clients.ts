import type { Herald } from "@herald/client";
import { useParams } from "@tanstack/react-router";
import { createHerald } from "./session.ts";

export { admin } from "./session.ts";

const heralds = new Map<string, Herald>();

/** The client of one project. */
export const heraldOf = (projectId: string): Herald => {
  const found = heralds.get(projectId) ?? createHerald(projectId);
  heralds.set(projectId, found);
  return found;
};

/** The id of the project that the page shows, and its client. */
export const useProject = (): { readonly id: string; readonly herald: Herald } => {
  const { project = "" } = useParams({ strict: false }) as { project?: string };
  return { id: project, herald: heraldOf(project) };
};
