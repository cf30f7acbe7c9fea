import { type Bus, openBucket } from "@herald/bus";
import { type ProjectId, projectRulesKey, RulesRecord } from "@herald/contracts";

/** The rules of all projects that have any, replicated into memory. */
export const watchRules = (bus: Bus) => {
  const known = new Map<string, RulesRecord>();
  const loaded = Promise.withResolvers<void>();
  let isLoaded = false;
  const onReady = () => {
    isLoaded = true;
    loaded.resolve();
  };
  const watching = openBucket(bus, "push_projects", RulesRecord).watch(
    ({ key, value }) => {
      if (value === undefined) known.delete(key);
      else known.set(key, value);
    },
    onReady,
    { keys: projectRulesKey("*" as ProjectId) },
  );
  return {
    /** Undefined: the project has none. */
    of: (projectId: ProjectId): RulesRecord | undefined => known.get(projectRulesKey(projectId)),
    /** Undefined once all records were received: before, nothing may be sent. */
    loading: (): Promise<void> | undefined => (isLoaded ? undefined : loaded.promise),
    stop: () => watching.stop(),
  };
};

export type Rules = Pick<ReturnType<typeof watchRules>, "of" | "loading">;
