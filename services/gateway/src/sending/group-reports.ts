import type { DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import { createGroupCommit, LRUCache } from "@herald/kit";

/** An open or a receipt. */
type Report = { readonly notificationId: NotificationId; readonly deviceId: DeviceId; readonly kind?: string };

/** Resolves when the report is on disk. */
export type RecordReport<One extends Report> = (projectId: ProjectId, report: One) => Promise<void>;

/** The contract's maximum: with 100 per message and one fsync per publish, a broker takes 140,000 reports a second. */
const maxPerMessage = 100;
/**
 * All reports that arrived while the previous ones were written, so that a slow disk gets fewer, larger writes. The interval fills
 * messages under load; users do not notice it, because they are already in the app.
 */
export const reportGroups = { max: 10_000, concurrent: 1, intervalMs: 20 } as const;
/** Apps wait up to two seconds for a receipt, and their users for none: fuller messages cost all behind them less. */
export const receiptGroups = { ...reportGroups, intervalMs: 50 } as const;

/** Groups the reports of a project that arrive together into messages of up to 100. A failed message fails only its own reports. */
export const createGroupReports = <One extends Report>(
  write: (projectId: ProjectId, reports: One[]) => Promise<void>,
  groups: { readonly max: number; readonly concurrent: number; readonly intervalMs: number } = reportGroups,
): RecordReport<One> => {
  type Reported = { readonly projectId: ProjectId; readonly report: One };
  const commit = createGroupCommit<Reported, Promise<void>>(async (reported) => {
    const written = new Map<Reported, Promise<void>>();
    for (const [projectId, own] of Map.groupBy(reported, (one) => one.projectId))
      for (let from = 0; from < own.length; from += maxPerMessage) {
        const part = own.slice(from, from + maxPerMessage);
        const writing = write(
          projectId,
          part.map(({ report }) => report),
        );
        for (const one of part) written.set(one, writing);
      }
    const outcomes = await Promise.allSettled(new Set(written.values()));
    // While the broker is unavailable, the reports behind these fail with them, and do not wait for another timeout.
    if (outcomes.every(({ status }) => status === "rejected")) await written.get(reported[0] as Reported);
    return reported.map((one) => written.get(one) ?? Promise.resolve());
  }, groups);
  return async (projectId, report) => commit({ projectId, report });
};

/** Ten seconds of the highest load of opens, at about 150 bytes each. */
const maxRemembered = 50_000;

/**
 * Answers a repeated report like the first, without writing it again, so a flood with one valid token costs only the signature checks.
 * Analytics dedupes reports that this cache has evicted.
 */
export const dedupeReports = <One extends Report>(
  record: RecordReport<One>,
  max = maxRemembered,
): RecordReport<One> => {
  // Promises, and not `fetchMethod`: it takes ten times the CPU, and nearly every report is a new one.
  const recent = new LRUCache<string, Promise<void>>({ max });
  return (projectId, report) => {
    const key = `${report.notificationId}/${report.deviceId}/${report.kind ?? ""}`;
    const known = recent.get(key);
    if (known !== undefined) return known;
    const writing = record(projectId, report);
    recent.set(key, writing);
    writing.catch(() => recent.delete(key));
    return writing;
  };
};
