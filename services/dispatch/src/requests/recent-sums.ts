import type { NotificationId, ProjectId } from "@herald/contracts";
import type { LedgerReads, Sums } from "../stores/ledger-reads.ts";

/** Counts of larger notifications may be a little old, as the interface says; those of smaller ones are exact. */
const exactBelow = 10_000;
/** A page that is reloaded while a million devices are sent to must not read two thousand rows each time. */
const oldestMs = 2_000;
const maxRemembered = 200;

/** The sums of a notification's rows while it is being sent. */
export const createRecentSums = (ledger: Pick<LedgerReads, "sums">, now: () => Date) => {
  const remembered = new Map<NotificationId, { sums: Sums; at: number }>();
  return async (projectId: ProjectId, id: NotificationId): Promise<Sums> => {
    const known = remembered.get(id);
    const at = now().getTime();
    if (known && at - known.at < oldestMs) return known.sums;
    remembered.delete(id);
    const sums = await ledger.sums(projectId, id);
    if (sums.tally.devices >= exactBelow) remembered.set(id, { sums, at });
    const [oldest] = remembered.keys();
    if (remembered.size > maxRemembered && oldest !== undefined) remembered.delete(oldest);
    return sums;
  };
};
