import {
  activityLimits,
  type IdempotencyRecord,
  type NotificationId,
  notificationRequests,
  type ProjectId,
} from "@herald/contracts";
import { hasCode } from "@herald/kit";
import type { RouteDeps } from "../deps.ts";
import type { Answered, Attempt, FirstTry, Work } from "../idempotency/idempotency.ts";
import type { ParsedSend } from "./accept-notification.ts";

export type SendAnswer = Answered & { readonly status: 202 };

/** A validated request. */
export type Validated<Reply extends SendAnswer> = {
  /** The valid sends, with provisional ids; at least one. */
  readonly sends: readonly ParsedSend[];
  /** The response when the first sends are accepted, with these ids, and the rest exceed a quota. */
  readonly reply: (accepted: readonly NotificationId[], refusal: Error | undefined) => Reply;
  /** Packs the ids of a request with several notifications for its record. */
  readonly batchOf?: (ids: readonly NotificationId[]) => IdempotencyRecord["batch"];
};

export type SendOperation<Reply extends SendAnswer> = {
  /** Throws validation-failed when no notification is valid. */
  readonly validate: (at: Date) => Promise<Validated<Reply>>;
  /** The sends that an earlier attempt accepted. */
  readonly rebuildSends: (attempt: Attempt<NotificationId>) => Promise<readonly ParsedSend[]>;
  /** The ids of the notifications that an earlier attempt accepted. */
  readonly idsOf: (attempt: Attempt<NotificationId>) => readonly NotificationId[];
  readonly rebuildResponse: (attempt: Attempt<NotificationId>) => Reply | Promise<Reply>;
};

/** Look-ups at the same time for one repeat. */
const concurrentLookUps = 20;

export type ChargeDeps = Pick<RouteDeps, "limits" | "queue">;

/**
 * Counts sends against the quotas of their project. Returns how many of them are within the quotas, counted from the first, the error for
 * the others, and a function that refunds the charge of sends that were not sent.
 */
export const chargeSends = async (
  { limits, queue }: ChargeDeps,
  projectId: ProjectId,
  sends: readonly Pick<ParsedSend, "bytes">[],
) => {
  const room = await limits.reserveSends(projectId, sends.length);
  let refusal = room.granted < sends.length ? room.refusal : undefined;
  let granted = 0;
  for (const { bytes } of sends.slice(0, room.granted)) {
    try {
      await queue.admit(projectId, bytes);
    } catch (error) {
      if (!hasCode(error, "quota-exceeded")) throw error;
      refusal = error;
      break;
    }
    granted++;
  }
  await room.refund(room.granted - granted);
  const refund = async () => {
    for (const { bytes } of sends.slice(0, granted)) queue.refund(projectId, bytes);
    await room.refund(granted);
  };
  return { granted, refusal, refund };
};

/** Counts a state of a Live Activity as one send, like {@link chargeSends}. */
export const chargeState = (deps: ChargeDeps, projectId: ProjectId) =>
  chargeSends(deps, projectId, [{ bytes: activityLimits.stateBytes }]);

/**
 * Whether all of the notifications were accepted. Dispatch finds each in the database or in the stream. Throws service-unavailable,
 * database-unavailable or bus-unavailable.
 */
const wereAccepted = async (
  { sendRequest }: Pick<RouteDeps, "sendRequest">,
  projectId: ProjectId,
  ids: readonly NotificationId[],
): Promise<boolean> => {
  for (let from = 0; from < ids.length; from += concurrentLookUps) {
    const some = ids.slice(from, from + concurrentLookUps);
    try {
      await Promise.all(
        some.map((notificationId) => sendRequest(notificationRequests.get, { projectId, notificationId })),
      );
    } catch (error) {
      if (hasCode(error, "notification-not-found")) return false;
      throw error;
    }
  }
  return true;
};

/** Performs a request that sends notifications. A first attempt is grouped with others; a repeat uses the ids of the first attempt. */
export const sendOperation = <Reply extends SendAnswer>(
  deps: ChargeDeps & Pick<RouteDeps, "sends" | "sendRequest">,
  projectId: ProjectId,
  { validate, rebuildSends, idsOf, rebuildResponse }: SendOperation<Reply>,
): Work<Reply, NotificationId> => ({
  performFirst: async ({ at, key }: FirstTry) => {
    const { sends, reply, batchOf } = await validate(at);
    const { granted, refusal, refund } = await chargeSends(deps, projectId, sends);
    if (granted === 0) throw refusal;
    const sendKey = key && { request: key, at, batchOf };
    let accepted: readonly NotificationId[] | undefined;
    try {
      accepted = await deps.sends.accept(sends.slice(0, granted), sendKey);
    } finally {
      // A repeat is not sent again, so it does not count.
      if (accepted === undefined) await refund();
    }
    return accepted && reply(accepted, refusal);
  },
  perform: async (attempt) => {
    const sends = await rebuildSends(attempt);
    const { granted, refusal, refund } = await chargeSends(deps, projectId, sends);
    try {
      // All were accepted before, so the quota must have room for all.
      if (granted < sends.length) throw refusal;
      await deps.sends.publishAgain(sends);
    } catch (error) {
      await refund();
      throw error;
    }
    return rebuildResponse(attempt);
  },
  earlier: {
    wasPerformed: (attempt) => wereAccepted(deps, projectId, idsOf(attempt)),
    rebuild: rebuildResponse,
  },
});
