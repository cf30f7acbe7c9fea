import { useQuery } from "@tanstack/react-query";
import { admin, useProject } from "./clients.ts";

/** The first hundred projects. */
export const useProjects = () =>
  useQuery({ queryKey: ["projects"], queryFn: () => admin.projects.list({ perPage: 100 }).page() });

/** What the page's project is called; its id until that is known. */
export const useProjectName = (): string => {
  const { id } = useProject();
  return useProjects().data?.data.find((project) => project.id === id)?.name ?? id;
};
