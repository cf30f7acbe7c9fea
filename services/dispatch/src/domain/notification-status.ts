import type { NotificationStatus } from "@herald/contracts";
import type { Tally } from "./counts.ts";

/** The states that a notification never leaves. */
export type FinalStatus = Extract<NotificationStatus, "completed" | "cancelled" | "expired">;

/** The final status of a notification. One whose targets matched no device is completed. */
export const finalStatus = (cancelled: boolean, { devices, expired }: Tally): FinalStatus => {
  if (cancelled) return "cancelled";
  return devices > 0 && expired === devices ? "expired" : "completed";
};

/** What is known of a notification that has not ended. */
export type Progress = {
  /** Its `send_at` has not come. */
  readonly scheduled: boolean;
  readonly cancelled: boolean;
  /** It waits for its project's turn to be expanded. */
  readonly queued: boolean;
};

/** The status that is shown before the end. Cancelling shows at once, though what is being sent still has to be counted. */
export const currentStatus = ({ scheduled, cancelled, queued }: Progress): NotificationStatus => {
  if (cancelled) return "cancelled";
  if (scheduled) return "scheduled";
  return queued ? "accepted" : "sending";
};

/** What the finish check looks at: the ledger's rows of one notification against what registry partitioned. */
export type LedgerState = {
  readonly expandedBatches: number;
  readonly finalRoots: number;
  /** Rows that are being sent, wait, or still have a child to be stored. */
  readonly open: number;
};

/** Whether every device of an expanded notification has its final state. */
export const isFinished = ({ expandedBatches, finalRoots, open }: LedgerState): boolean =>
  open === 0 && finalRoots >= expandedBatches;
