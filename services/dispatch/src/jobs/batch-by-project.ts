import type { ProjectId } from "@herald/contracts";
import { createGroupCommit, type Logger, type Repeating, repeat } from "@herald/kit";

/**
 * Work of a project that all share who ask for it in the same moment, one round at a time. The projects of a round succeed and fail
 * alone. Each call resolves after a round that began when it was made or later.
 */
export const batchByProject = <Item>(
  work: (projectId: ProjectId, items: readonly Item[]) => Promise<unknown>,
): ((projectId: ProjectId, item: Item) => Promise<void>) => {
  type Asked = { readonly projectId: ProjectId; readonly item: Item };
  const commit = createGroupCommit<Asked, PromiseSettledResult<unknown>>(
    async (all) => {
      const byProject = Map.groupBy(all, ({ projectId }) => projectId);
      const results = await Promise.allSettled(
        [...byProject].map(([projectId, asked]) =>
          work(
            projectId,
            asked.map(({ item }) => item),
          ),
        ),
      );
      const resultOf = new Map([...byProject.keys()].map((projectId, at) => [projectId, results[at]]));
      return all.map(({ projectId }) => resultOf.get(projectId) as PromiseSettledResult<unknown>);
    },
    { max: 1_000, concurrent: 1 },
  );
  return async (projectId, item) => {
    const result = await commit({ projectId, item });
    if (result.status === "rejected") throw result.reason;
  };
};

/** Does something now and then for every project that has some of it, in the order of their ids. */
export const sweepProjects = (
  name: string,
  everyMs: number,
  /** The first project after this one, by its id. */
  projectAfter: (projectId: string) => Promise<ProjectId | undefined>,
  work: (projectId: ProjectId) => Promise<void>,
  log: Logger,
): Repeating =>
  repeat(name, everyMs, log, async (signal) => {
    let projectId = await projectAfter("");
    while (projectId !== undefined && !signal.aborted) {
      await work(projectId);
      projectId = await projectAfter(projectId);
    }
  });
