import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** Long enough for the gateway to notice a broken connection. */
const retryAfterSeconds = 5;

/** Counts what is open, such as `streams`. `acquire` returns a function that frees the slot; calling it again does nothing. Throws rate-limited. */
export const createSlots = (
  { perProject, total }: { readonly perProject: number; readonly total: number },
  what: "streams" | "imports" | "exports",
) => {
  const full = (message: string) => new HeraldError("rate-limited", `${what}: ${message}`, { retryAfterSeconds });
  const open = new Map<ProjectId, number>();
  let all = 0;
  return {
    openOf: (projectId: ProjectId): number => open.get(projectId) ?? 0,
    acquire: (projectId: ProjectId): (() => void) => {
      const own = open.get(projectId) ?? 0;
      if (own >= perProject) throw full(`a project may have at most ${perProject} open here`);
      if (all >= total) throw full(`this gateway has ${total} open, its limit; close one, or try again later`);
      open.set(projectId, own + 1);
      all++;
      let released = false;
      return () => {
        if (released) return;
        released = true;
        all--;
        const left = (open.get(projectId) ?? 1) - 1;
        if (left > 0) open.set(projectId, left);
        else open.delete(projectId);
      };
    },
  };
};
