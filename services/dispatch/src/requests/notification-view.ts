import type { Notification } from "@herald/contracts";
import { shownCounts } from "../domain/counts.ts";
import { currentStatus } from "../domain/notification-status.ts";
import type { Sums } from "../stores/ledger-reads.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";

/** A notification in the words of the interface. `sums` are its ledger's; a final one has its own. */
export const notificationView = (document: NotificationRecord, sums?: Sums): Notification => {
  const { _id, content, acceptedAt, expanded, cancelledAt, dueAt, final } = document;
  const common = {
    ...content,
    id: _id,
    unmatched: expanded?.unmatched ?? [],
    created_at: acceptedAt.toISOString(),
  };
  if (final)
    return {
      ...common,
      status: final.status,
      counts: shownCounts(final.tally),
      failures: { ...final.failures },
      skips: { ...final.tally.skips },
      completed_at: final.at.toISOString(),
    };
  const tally = sums?.tally ?? { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };
  return {
    ...common,
    status: currentStatus({
      scheduled: dueAt !== undefined,
      cancelled: cancelledAt !== undefined,
      queued: document.expansion === "queued",
    }),
    counts: shownCounts(tally, expanded?.devices),
    failures: { ...sums?.failures },
    skips: { ...tally.skips },
  };
};
