import { type Bus, hasMessages, isUnsettled, oldestMessageTime, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  batchLimits,
  DeliverBatchV1,
  type DeviceId,
  ExpandedV1,
  ExpandV1,
  type NotificationId,
  type Platform,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import { laneOf } from "@herald/rules";
import type { Deps } from "../deps.ts";
import type { Sendable } from "../domain/settle-row.ts";
import {
  type Claim,
  type DeliveryDocument,
  deadLetterClaim,
  isSameClaim,
  ownersOf,
  packedAt,
  packedCount,
} from "../stores/delivery-document.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { Expanded, NotificationRecord, NotificationState } from "../stores/notification-document.ts";
import type { ExpandQueued } from "./expand.ts";
import type { ExpansionSteps } from "./expansions.ts";
import type { DueMessages } from "./follow-up.ts";
import type { Pipeline } from "./pipeline.ts";

/** The clocks of two streams' leaders may differ a little. */
const skewMs = 10_000;
/** One durable for each stream whose messages start rows. */
const platforms: readonly Platform[] = ["ios", "android", "web"];
const startingDurables = [
  "dispatch-send-groups",
  "dispatch-single-sends",
  "dispatch-drain",
  "dispatch-broadcast-ios",
  "dispatch-due",
] as const;

/** Finds messages of a notification that the broker still stores. A process that receives one continues the work. */
const createLiveMessages = (bus: Bus) => ({
  /** A message to expand a page, or to record the end of the expansion. */
  ofExpansion: async (projectId: ProjectId, notificationId: NotificationId): Promise<boolean> => {
    const page = ExpandV1.subject({ projectId, notificationId, page: 0 } as ExpandV1).replace(/0$/, "*");
    // In this order: the last page's message is acked only after the end is published.
    if (await hasMessages(bus, "PUSH_CMD", page)) return true;
    return hasMessages(bus, "PUSH_CMD", ExpandedV1.subject({ projectId, notificationId } as ExpandedV1));
  },

  /** A batch that was published before its expansion ended, at `expandedAt`. */
  ofBatches: async ({ _id, projectId, content }: NotificationRecord, expandedAt: Date): Promise<boolean> => {
    const lane = laneOf(content.targets);
    const oldest = await Promise.all(
      platforms.map((platform) =>
        oldestMessageTime(
          bus,
          "PUSH_DELIVER",
          DeliverBatchV1.subject({ lane, platform, projectId, notificationId: _id } as DeliverBatchV1),
        ),
      ),
    );
    return oldest.some((at) => at !== undefined && at.getTime() <= expandedAt.getTime() + skewMs);
  },

  /** The message that a row was started for. */
  ofClaim: async (claim: Claim): Promise<boolean> => {
    const unsettled = await Promise.all(startingDurables.map((durable) => isUnsettled(bus, durable, claim)));
    return unsettled.includes(true);
  },
});

/** Whether registry had no part in the partitioning: the rows of a small send are stored with it. */
const isSmall = ({ at, lost }: Expanded): boolean => at === undefined && lost === undefined;

/** Longer than a provider's timeout: a process whose message is gone still writes the outcomes of pushes in flight. */
const lostAfterMs = 45_000;

type RecoverDeps = Pick<
  Deps,
  "bus" | "deliveries" | "ledger" | "log" | "notifications" | "now" | "publish" | "sends"
> & {
  readonly pipeline: Pipeline;
  readonly expansionSteps: Pick<ExpansionSteps, "again">;
  readonly expandQueued: ExpandQueued;
  readonly dueMessages: DueMessages;
};

export const createRecoverLostWork = (deps: RecoverDeps) => {
  const { bus, ledger, notifications, expansionSteps, sends, deliveries, pipeline, expandQueued, dueMessages } = deps;
  const { now, log } = deps;
  const live = createLiveMessages(bus);
  const never = new AbortController().signal;

  /** A row's devices as registry knows them now, in the row's order. Devices unknown to registry are skipped as moved when due. */
  const devicesOf = async (row: DeliveryDocument): Promise<Sendable[]> => {
    if (row.devices) return row.devices.map((device) => ({ ...device, repeat: true }));
    const ids = Array.from({ length: packedCount(row.deviceIds) }, (_, at) => packedAt(row.deviceIds, at));
    const { projectId } = row;
    const request = { projectId, sends: [{ targets: ids }], limit: batchLimits.devices };
    const resolved = await sendRequest(bus, audienceRequests.resolve, request, {
      suspect: row._id.replaceAll("/", "-"),
    });
    const known = new Map<DeviceId, Recipient>();
    for (const { devices } of resolved.sends[0]?.batches ?? [])
      for (const device of devices) known.set(device.id, device);
    const owners = ownersOf(row);
    return ids.map((id, at) => {
      const { userId: _, ...device } = known.get(id) ?? { id, token: "", tokenAt: 0 };
      const owner = owners[at];
      return { ...device, ...(owner !== undefined && { userId: owner }), attempts: 0, repeat: true };
    });
  };

  /** False when another process continues the row. */
  const releaseRow = async (row: DeliveryDocument): Promise<boolean> => {
    if (!(await ledger.release(row, await devicesOf(row), now()))) return false;
    await dueMessages.publish(row, now());
    return true;
  };

  /** True when the row will be sent again. */
  const recoverRow = async (row: DeliveryDocument): Promise<boolean> => {
    const { _id: id, projectId, claim = deadLetterClaim } = row;
    if (claim.at === deadLetterClaim.at) {
      const run = await deliveries.claim({ projectId, id }, claim, now());
      if (run) await pipeline.abandon(run, never);
      return false;
    }
    if (await live.ofClaim(claim)) return false;
    if (!(await releaseRow(row))) return false;
    log.warn({ projectId, batchId: id }, "the message of a batch is gone: it is sent again as a possible repeat");
    return true;
  };

  const expandAgain = async (document: NotificationRecord): Promise<void> => {
    if (!(await expansionSteps.again(document))) return;
    log.warn(
      { projectId: document.projectId, notificationId: document._id },
      "messages of a notification are gone: it is expanded again",
    );
    await expandQueued(document.projectId);
  };

  /** Without its message, only this sweep publishes the first events of a small send. */
  const publishAgain = async ({ _id, projectId }: NotificationRecord): Promise<void> => {
    const found = await sends.find({ projectId, notificationId: _id });
    if (found) await deps.publish(eventsOfSend(found.document, found.events));
  };

  /** Expands a notification again if some of its batches have neither a row nor a message. */
  const recoverBatches = async (document: NotificationRecord): Promise<void> => {
    const { expanded } = document;
    // A small send is stored with all of its rows.
    if (expanded?.at === undefined || (await live.ofBatches(document, expanded.at))) return;
    await expandAgain(document);
  };

  const recoverExpansion = async (projectId: ProjectId, id: NotificationId): Promise<void> => {
    if (await live.ofExpansion(projectId, id)) return;
    // Read after the check for messages: an expansion that has just ended has no message either.
    const document = await notifications.get(projectId, id);
    if (document?.step === "expanding") await expandAgain(document);
  };

  /**
   * Continues a notification that should have ended, if the broker lost its data and with it the message that would continue it. Marks
   * pushes that may be repeats. Does nothing while such a message exists. Repeatable, also by two replicas at the same time.
   */
  const recover = async (known: NotificationState): Promise<void> => {
    const { _id, projectId, expanded } = known;
    if (!expanded || known.step === "expanding") return recoverExpansion(projectId, _id);
    if (known.step === "sending") {
      if (await live.ofClaim(known.claim)) return;
      await sends.moveToDeliveries(projectId, _id);
    }
    let released = false;
    for (const row of await ledger.started(projectId, _id, new Date(now().getTime() - lostAfterMs)))
      released = (await recoverRow(row)) || released;
    const document = await notifications.get(projectId, _id);
    if (!document) return;
    if (!document.end && (await ledger.countRoots(projectId, _id)) < expanded.batches) await recoverBatches(document);
    // The sweep, not the process that began the send, found it or has just ended it.
    else if (isSmall(expanded) && (released || document.end)) await publishAgain(document);
  };

  return {
    recover,
    /**
     * For a small send that a message began: sends the rows that were started for it again, due now, each with its own message, marked as
     * possible repeats.
     */
    release: async (projectId: ProjectId, id: NotificationId, claim: Claim): Promise<void> => {
      await sends.moveToDeliveries(projectId, id);
      for (const row of await ledger.started(projectId, id, now()))
        if (isSameClaim(row.claim, claim)) await releaseRow(row);
    },
  };
};

export type RecoverLostWork = ReturnType<typeof createRecoverLostWork>;
