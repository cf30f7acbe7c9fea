import { guardStore, retryConflicts } from "@herald/mongo";

/**
 * A store whose functions are run again when they lost to another write, because then they did nothing, and throw `database-away`
 * when that is why they failed.
 */
export const repeatableStore = <Store extends Readonly<Record<string, (...args: never[]) => Promise<unknown>>>>(
  store: Store,
): Store =>
  guardStore(
    Object.fromEntries(
      Object.entries(store).map(([name, work]) => [name, (...args: never[]) => retryConflicts(() => work(...args))]),
    ) as unknown as Store,
  );
