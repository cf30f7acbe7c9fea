import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { QueueQuota } from "../limits/queue-quota.ts";
import type { RateLimits } from "../limits/rate-limits.ts";

type Quotas = { readonly limits: Pick<RateLimits, "reserveSends">; readonly queue: QueueQuota };

export type Charge = {
  /** The number of sends within the quotas; they are the first ones. */
  readonly granted: number;
  /** The error for the others. */
  readonly refusal?: HeraldError;
  /** Takes the charge back, because they were not sent. */
  readonly refund: () => Promise<void>;
};

/** Counts sends, given by their bytes, against the quotas of their project. */
export const chargeSends = async (
  { limits, queue }: Quotas,
  projectId: ProjectId,
  bytes: readonly number[],
): Promise<Charge> => {
  const room = await limits.reserveSends(projectId, bytes.length);
  let refusal = room.granted < bytes.length ? room.refusal : undefined;
  let granted = 0;
  for (const own of bytes.slice(0, room.granted)) {
    try {
      await queue.admit(projectId, own);
    } catch (error) {
      if (!(error instanceof HeraldError && error.code === "quota-exceeded")) throw error;
      refusal = error;
      break;
    }
    granted++;
  }
  await room.refund(room.granted - granted);
  return {
    granted,
    ...(refusal ? { refusal } : {}),
    refund: async () => {
      for (const own of bytes.slice(0, granted)) queue.refund(projectId, own);
      await room.refund(granted);
    },
  };
};
