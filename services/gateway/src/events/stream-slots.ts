import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** Long enough for a stream that broke off to be noticed. */
const retryAfterSeconds = 5;

const full = (message: string) => new HeraldError("rate-limited", `streams: ${message}`, { retryAfterSeconds });

/** Counts open streams: each takes a place, throws rate-limited where none is left, and gives it back once. */
export const createStreamSlots = ({ perProject, inAll }: { perProject: number; inAll: number }) => {
  const open = new Map<ProjectId, number>();
  let all = 0;
  return {
    take: (projectId: ProjectId): (() => void) => {
      const own = open.get(projectId) ?? 0;
      if (own >= perProject) throw full(`at most ${perProject} of a project are accepted at a time here`);
      if (all >= inAll) throw full("this gateway has as many as it takes; close one, or try again later");
      open.set(projectId, own + 1);
      all++;
      let given = false;
      return () => {
        if (given) return;
        given = true;
        all--;
        const left = (open.get(projectId) ?? 1) - 1;
        if (left > 0) open.set(projectId, left);
        else open.delete(projectId);
      };
    },
  };
};
