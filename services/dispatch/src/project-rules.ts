import { type Bus, openBucket } from "@herald/bus";
import { type ProjectId, projectRulesKey, RulesRecord } from "@herald/contracts";

/** The rules of all projects that have any. Fields and not functions, because every send reads them. */
export type Rules = {
  /** Absent: the project has none. */
  readonly byProject: ReadonlyMap<string, RulesRecord>;
  /** Undefined once all records were received: before, nothing may be sent. */
  readonly loading: Promise<void> | undefined;
};

/** {@link Rules}, replicated into memory. */
export const watchRules = (bus: Bus): Rules & { readonly stop: () => Promise<void> } => {
  const known = new Map<string, RulesRecord>();
  const loaded = Promise.withResolvers<void>();
  const onReady = () => {
    rules.loading = undefined;
    loaded.resolve();
  };
  const watching = openBucket(bus, "push_projects", RulesRecord).watch(
    ({ key, value }) => {
      const [projectId = ""] = key.split(".");
      if (value === undefined) known.delete(projectId);
      else known.set(projectId, value);
    },
    onReady,
    { keys: projectRulesKey("*" as ProjectId) },
  );
  const rules = { byProject: known, loading: loaded.promise as Rules["loading"], stop: () => watching.stop() };
  return rules;
};
