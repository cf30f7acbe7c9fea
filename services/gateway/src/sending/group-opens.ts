import type { OpenGroupV1, ProjectId } from "@herald/contracts";
import { createGroupCommit, LRUCache } from "@herald/kit";

type Open = OpenGroupV1["opens"][number];
type Reported = { readonly projectId: ProjectId; readonly open: Open };

/** Resolves when the open is on disk. */
export type RecordOpen = (projectId: ProjectId, open: Open) => Promise<void>;

/** The contract's maximum: with 100 per message and one fsync per publish, a broker takes 140,000 opens a second. */
const maxPerMessage = 100;
/**
 * All opens that arrived while the previous ones were written, so that a slow disk gets fewer, larger writes. The interval fills messages
 * under load; users do not notice it, because they are already in the app.
 */
export const openGroups = { max: 10_000, concurrent: 1, intervalMs: 20 } as const;

/** Groups the opens of a project that arrive together into messages of up to 100. A failed message fails only its own opens. */
export const createGroupOpens = (write: (opens: OpenGroupV1) => Promise<void>): RecordOpen => {
  const commit = createGroupCommit<Reported, Promise<void>>(async (reported) => {
    const written = new Map<Reported, Promise<void>>();
    for (const [projectId, own] of Map.groupBy(reported, (one) => one.projectId))
      for (let from = 0; from < own.length; from += maxPerMessage) {
        const part = own.slice(from, from + maxPerMessage);
        const writing = write({ projectId, opens: part.map(({ open }) => open) });
        for (const one of part) written.set(one, writing);
      }
    const outcomes = await Promise.allSettled(new Set(written.values()));
    // While the broker is unavailable, the opens behind these fail with them, and do not wait for another timeout.
    if (outcomes.every(({ status }) => status === "rejected")) await written.get(reported[0] as Reported);
    return reported.map((one) => written.get(one) ?? Promise.resolve());
  }, openGroups);
  return async (projectId, open) => commit({ projectId, open });
};

/** Ten seconds of the highest load of opens, at about 150 bytes each. */
const maxRemembered = 50_000;

/**
 * Answers a repeated open like the first, without writing it again, so a flood with one valid token costs only the signature checks.
 * Analytics dedupes opens that this cache has evicted.
 */
export const dedupeOpens = (record: RecordOpen, max = maxRemembered): RecordOpen => {
  // Promises, and not `fetchMethod`: it takes ten times the CPU, and nearly every open is a new one.
  const recent = new LRUCache<string, Promise<void>>({ max });
  return (projectId, open) => {
    const key = `${open.notificationId}/${open.deviceId}`;
    const known = recent.get(key);
    if (known !== undefined) return known;
    const writing = record(projectId, open);
    recent.set(key, writing);
    writing.catch(() => recent.delete(key));
    return writing;
  };
};
