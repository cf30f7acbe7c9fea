import { type Bus, openBucket } from "@herald/bus";
import { installation, type ProjectId, projectRulesKey, RulesRecord, type StoredPause } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** The rules of all projects that have any. Fields and not functions, because every send reads them. */
export type Rules = {
  /** Absent: the project has none. */
  readonly byProject: ReadonlyMap<string, RulesRecord>;
  /** Of those whose sends wait, by project or for all; empty for most installations, so that a send asks no more. */
  readonly pauses: ReadonlyMap<string, StoredPause>;
  /** Undefined once all records were received: before, nothing may be sent. */
  readonly loading: Promise<void> | undefined;
};

/** Whether sends of the project wait, and why; undefined: they are sent. */
export const pauseOf = ({ pauses }: Pick<Rules, "pauses">, projectId: ProjectId): StoredPause | undefined =>
  pauses.get(projectId) ?? pauses.get(installation);

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
  const pauses = new Map<string, StoredPause>();
  const missing = new Set<string>();
  let loaded = Promise.withResolvers<void>();

  const change = (scope: string, record: RulesRecord | undefined) => {
    if (record) known.set(scope, record);
    else known.delete(scope);
    if (record?.paused) pauses.set(scope, record.paused);
    else if (pauses.delete(scope)) onResumed(scope as PauseScope);
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
  const rules = {
    byProject: known,
    pauses,
    loading: loaded.promise as Rules["loading"],
    stop: () => watching.stop(),
  };
  return rules;
};
