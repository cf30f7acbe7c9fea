import type { Herald } from "@herald/client";
import { useParams } from "@tanstack/react-router";
import { projectClient } from "./session.ts";

export { admin } from "./session.ts";

const heralds = new Map<string, Herald>();

/** The id of the project that the page shows, and its client. */
export const useProject = (): { readonly id: string; readonly herald: Herald } => {
  const { project: id = "" } = useParams({ strict: false }) as { project?: string };
  const herald = heralds.get(id) ?? projectClient(id);
  heralds.set(id, herald);
  return { id, herald };
};
