import type { Project } from "@herald/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { admin, useProject } from "./clients.ts";
import { firstRows } from "./read.ts";

/** The project that the page shows, with its settings. */
export const useOwnProject = () => {
  const { id } = useProject();
  return useQuery({ queryKey: [id, "project"], queryFn: () => admin.projects.get(id), refetchInterval: 30_000 });
};

/** The name of the page's project; its id until the name has loaded. */
export const useProjectName = (): string => {
  const { id } = useProject();
  return useOwnProject().data?.name ?? id;
};

const maxFound = 50;

/** Reads the whole list, because names have no index. */
async function* projectsNamed(text: string, signal: AbortSignal): AsyncGenerator<Project> {
  for await (const project of admin.projects.list({ signal }))
    if (project.name.toLowerCase().includes(text.toLowerCase())) yield project;
}

/** The first projects whose name contains a text. */
export const useProjectsNamed = (text: string) =>
  useQuery({
    queryKey: ["projects", "named", text],
    queryFn: ({ signal }) => firstRows(projectsNamed(text, signal), maxFound),
    placeholderData: keepPreviousData,
  });
