import type { ProjectId } from "@herald/contracts";
import type { GroupOpens } from "./group-opens.ts";

/** Ten seconds of the highest load of opens; some 150 bytes each. */
const maxRemembered = 50_000;
const written = Promise.resolve();

/**
 * Answers a repeated open like the first, without writing it again, so a flood with one valid token costs no more than its signature.
 * Analytics dedupes what this cache has evicted.
 */
export const dedupeOpens = (record: GroupOpens["record"], maxEntries = maxRemembered): GroupOpens["record"] => {
  const recent = new Map<string, Promise<void>>();
  return (projectId: ProjectId, open) => {
    const key = `${open.notificationId}/${open.deviceId}`;
    const known = recent.get(key);
    if (known !== undefined) return known;
    const [oldest] = recent.keys();
    if (recent.size >= maxEntries && oldest !== undefined) recent.delete(oldest);
    const writing = record(projectId, open);
    recent.set(key, writing);
    void writing.then(
      // All finished writes share one promise, which saves memory.
      () => recent.has(key) && recent.set(key, written),
      () => recent.delete(key),
    );
    return writing;
  };
};
