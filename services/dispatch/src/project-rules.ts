import { type Bus, openBucket } from "@herald/bus";
import { installation, type ProjectId, projectRulesKey, RulesRecord, type StoredPause } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** The rules of all projects that have any. Fields and not functions, because every send reads them. */
export type Rules = {
  /** Absent: the project has none. */
  readonly byProject: ReadonlyMap<string, RulesRecord>;
  /** Undefined once all records were received: before, nothing may be sent. */
  readonly loading: Promise<void> | undefined;
};

/** Whether sends of the project wait, and why; undefined: they are sent. */
export const pauseOf = ({ byProject }: Pick<Rules, "byProject">, projectId: ProjectId): StoredPause | undefined =>
  byProject.get(projectId)?.paused ?? byProject.get(installation)?.paused;

/** What is paused: the project, or all. */
export type PauseScope = ProjectId | typeof installation;

/** Throws project-paused while sends of the project wait. */
export const requireRunning = (rules: Pick<Rules, "byProject">, projectId: ProjectId): void => {
  const pause = pauseOf(rules, projectId);
  if (!pause) return;
  const { by, at, reason } = pause;
  const why = `paused by ${by.name ?? by.id} at ${at}${reason === undefined ? "" : `: ${reason}`}`;
  throw new HeraldError("project-paused", `the project's sends are ${why}; resume them first`);
};

/** {@link Rules}, replicated into memory. `onResumed` is called when this process learns that a pause has ended. */
export const watchRules = (
  bus: Bus,
  onResumed: (scope: PauseScope) => void,
): Rules & { readonly stop: () => Promise<void> } => {
  const known = new Map<string, RulesRecord>();
  const loaded = Promise.withResolvers<void>();
  const onReady = () => {
    rules.loading = undefined;
    loaded.resolve();
  };
  const watching = openBucket(bus, "push_projects", RulesRecord).watch(
    ({ key, value }) => {
      const [projectId = ""] = key.split(".");
      const wasPaused = known.get(projectId)?.paused !== undefined;
      if (value === undefined) known.delete(projectId);
      else known.set(projectId, value);
      if (wasPaused && value?.paused === undefined) onResumed(projectId as PauseScope);
    },
    onReady,
    { keys: projectRulesKey("*" as ProjectId) },
  );
  const rules = { byProject: known, loading: loaded.promise as Rules["loading"], stop: () => watching.stop() };
  return rules;
};
