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

/** Throws project-paused while sends of the project wait. */
export const requireRunning = async (rules: Rules, projectId: ProjectId): Promise<void> => {
  if (rules.loading) await rules.loading;
  const pause = pauseOf(rules, projectId);
  if (!pause) return;
  const { by, at, reason } = pause;
  const why = `paused by ${by.name ?? by.id} at ${at}${reason === undefined ? "" : `: ${reason}`}`;
  throw new HeraldError("project-paused", `the project's sends are ${why}; resume them first`);
};

/** What is paused: the project, or all. */
export type PauseScope = ProjectId | typeof installation;

/**
 * {@link Rules}, replicated into memory. `onResumed` is called when this process learns that a pause has ended. A bucket without the record
 * of all projects is new: its earlier records count until registry has written all again.
 */
export const watchRules = (
  bus: Bus,
  onResumed: (scope: PauseScope) => void,
): Rules & { readonly stop: () => Promise<void> } => {
  const known = new Map<string, RulesRecord>();
  const missing = new Set<string>();
  let loaded = Promise.withResolvers<void>();

  const change = (scope: string, record: RulesRecord | undefined) => {
    const wasPaused = known.get(scope)?.paused !== undefined;
    if (record) known.set(scope, record);
    else known.delete(scope);
    if (wasPaused && record?.paused === undefined) onResumed(scope as PauseScope);
  };
  const update = () => {
    if (known.has(installation) && !missing.has(installation)) {
      for (const scope of missing) change(scope, undefined);
      missing.clear();
      rules.loading = undefined;
      loaded.resolve();
    } else if (!rules.loading) {
      loaded = Promise.withResolvers();
      rules.loading = loaded.promise;
    }
  };
  const watching = openBucket(bus, "push_projects", RulesRecord).watch(
    ({ key, value }) => {
      const [scope = ""] = key.split(".");
      if (value === undefined) missing.add(scope);
      else {
        missing.delete(scope);
        change(scope, value);
      }
      if (watching.ready()) update();
    },
    update,
    { keys: projectRulesKey("*" as ProjectId) },
  );
  const rules = { byProject: known, loading: loaded.promise as Rules["loading"], stop: () => watching.stop() };
  return rules;
};
