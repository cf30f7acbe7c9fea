import { defineHandler, type Handler } from "@herald/bus";
import { type DurableName, ProjectDeletedV1, type ProjectId, UserErasedV1, userKey } from "@herald/contracts";
import { type Logger, type PeriodicTask, runEvery } from "@herald/kit";
import type { Erasure, ErasureStore } from "@herald/mongo";

/** Times of the passes after the event: at once, after writes in progress, and after messages that waited in queues, up to a day. */
const passesAfterMs = [0, 30_000, 1_800_000, 90_000_000] as const;
const lookEveryMs = 10_000;
/** After this time another process repeats the pass, which is harmless. */
const passMs = 600_000;

/** Removes a user, or some of a user's devices, from all rows about events before the erasure. Repeatable. */
export type EraseRows = (
  erased: Pick<Erasure, "key" | "at" | "devices" | "tokens"> & { readonly projectId: ProjectId },
) => Promise<void>;

/** Removes all that a service stores of a project. Repeatable. */
type RemoveProject = (projectId: ProjectId, signal: AbortSignal) => Promise<void>;

type Parts = {
  readonly erasures: ErasureStore;
  readonly erase: EraseRows;
  readonly removeProject: RemoveProject;
  readonly now: () => Date;
};

/** Stores the erasure of a user and makes the first pass. */
export const eraseUser = (durable: DurableName, { erasures, erase }: Pick<Parts, "erasures" | "erase">): Handler =>
  defineHandler({
    durable, // renaming a durable replays its stream
    message: UserErasedV1,
    concurrency: 1, // a pass reads much
    async handle({ data: { project_id: projectId, user_id: userId, at } }) {
      const erasure = { projectId, key: userKey(projectId, userId), at: new Date(at) };
      await erasures.put(erasure, new Date(at));
      await erase(erasure);
      await erasures.passed({ ...erasure, passes: 0 }, nextPass({ ...erasure, passes: 1 }));
    },
  });

/** Removes a deleted project. What was being handled meanwhile, or waited in queues, is removed by the later passes. */
export const deleteProject = (
  durable: DurableName,
  concurrency: number,
  { erasures, removeProject }: Pick<Parts, "erasures" | "removeProject">,
): Handler =>
  defineHandler({
    durable, // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency,
    async handle({ data: { project_id: projectId, at }, signal }) {
      await removeProject(projectId, signal);
      await erasures.removeProject(projectId);
      const erasure = { projectId, key: projectId, at: new Date(at), passes: 1 };
      await erasures.put(erasure, nextPass(erasure));
    },
  });

const nextPass = ({ at, passes }: Pick<Erasure, "at" | "passes">): Date | undefined => {
  const after = passesAfterMs[passes];
  return after === undefined ? undefined : new Date(at.getTime() + after);
};

/** Makes the later passes. Several processes may run it. */
export const startErasurePasses = ({ erasures, erase, removeProject, now }: Parts, log: Logger): PeriodicTask =>
  runEvery("erase users and projects again", lookEveryMs, log, async (signal) => {
    while (!signal.aborted) {
      const found = await erasures.claim(now(), new Date(now().getTime() + passMs));
      if (!found) return;
      const projectId = found.projectId as ProjectId;
      if (found.key === projectId) await removeProject(projectId, signal);
      else await erase({ ...found, projectId });
      await erasures.passed(found, nextPass({ at: found.at, passes: found.passes + 1 }));
    }
  });
