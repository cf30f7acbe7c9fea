import { type Bus, sendRequest } from "@herald/bus";
import {
  batchLimits,
  type DeviceId,
  type NotificationId,
  type OutboxEvent,
  type ProjectId,
  type Recipient,
  ResolveSends,
} from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { DueMessages } from "../delivery/due-messages.ts";
import type { Expand } from "../delivery/expand.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { Resolution } from "../delivery/prepare.ts";
import type { Sendable } from "../domain/settle-batch.ts";
import { deadLetterClaim, ownersOf } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { ExpansionQueue } from "../stores/expansion-queue.ts";
import type { LostWork, StartedRow } from "../stores/lost-work.ts";
import type { NotificationRecord, NotificationState } from "../stores/notification-document.ts";
import { notificationAccepted, notificationEnded } from "../stores/notification-events.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { packedAt, packedCount } from "../stores/packed-ids.ts";
import type { SmallSendStore } from "../stores/small-send-store.ts";
import type { LiveMessages } from "./live-messages.ts";

/** Longer than a provider may take to answer: a process whose message is gone still writes the outcomes of what it has sent. */
const lostAfterMs = 45_000;

/** When the sweep looks at what was expanded again. */
const checkAgainMs = 60_000;

/** Resolves targets to devices now; `null`: more than `limit`, or not answered by an index. */
type Resolve = (projectId: ProjectId, targets: readonly string[], limit: number) => Promise<Resolution | null>;

export const createResolveOne =
  (bus: Bus): Resolve =>
  async (projectId, targets, limit) => {
    const { sends } = await sendRequest(bus, ResolveSends, { sends: [{ projectId, targets: [...targets] }], limit });
    return sends[0] ?? null;
  };

export type RecoverDeps = {
  readonly live: LiveMessages;
  readonly lost: LostWork;
  readonly notifications: Pick<NotificationStore, "get">;
  readonly queue: Pick<ExpansionQueue, "restart">;
  readonly sends: Pick<SmallSendStore, "moveToDeliveries" | "findWithEvents">;
  readonly deliveries: Pick<DeliveryStore, "claim">;
  readonly pipeline: Pick<Pipeline, "abandon">;
  readonly expand: Expand;
  readonly dueMessages: Pick<DueMessages, "publishBatch">;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  readonly resolve: Resolve;
  readonly now: () => Date;
  readonly log: Logger;
};

export type RecoverLostWork = {
  /**
   * Goes on with a notification that should have ended, where the message that would is gone: the broker lost its data. Whatever may
   * have been sent is marked as a possible repeat. Does nothing while a message lives. Repeatable, also by two replicas at once.
   */
  readonly recover: (document: NotificationState) => Promise<void>;
  /** Has the rows of a small send that were started be sent again at once, by messages of their own and marked: its caller failed. */
  readonly release: (projectId: ProjectId, id: NotificationId) => Promise<void>;
};

export const createRecoverLostWork = (deps: RecoverDeps): RecoverLostWork => {
  const { live, lost, notifications, queue, sends, deliveries, pipeline, expand, dueMessages, now, log } = deps;
  const never = new AbortController().signal;

  /** A row's devices as registry knows them now, in the row's order; what it does not know is skipped as moved when it is due. */
  const devicesOf = async (row: StartedRow): Promise<Sendable[]> => {
    if (row.devices) return row.devices.map((device) => ({ ...device, repeat: true }));
    const ids = Array.from({ length: packedCount(row.deviceIds) }, (_, at) => packedAt(row.deviceIds, at));
    const resolution = ids.length === 0 ? null : await deps.resolve(row.projectId, ids, batchLimits.devices);
    const known = new Map<DeviceId, Recipient>();
    for (const { devices } of resolution?.batches ?? []) for (const device of devices) known.set(device.id, device);
    const owners = ownersOf(row);
    return ids.map((id, at) => {
      const { userId: _, ...device } = known.get(id) ?? { id, token: "", tokenAt: 0 };
      const owner = owners[at];
      return { ...device, ...(owner !== undefined && { userId: owner }), attempts: 0, repeat: true };
    });
  };

  /** False when somebody else goes on with it. */
  const releaseRow = async (row: StartedRow): Promise<boolean> => {
    if (!(await lost.release(row, await devicesOf(row), now()))) return false;
    await dueMessages.publishBatch(row, now());
    return true;
  };

  /** True when the row goes on. */
  const recoverRow = async (row: StartedRow): Promise<boolean> => {
    const { _id: id, projectId } = row;
    const claim = { at: row.claim ?? 0, sequence: row.claimSequence ?? 0 };
    if (claim.at === deadLetterClaim.at) {
      const run = await deliveries.claim({ projectId, id, claim }, now());
      if (run) await pipeline.abandon(run, never);
      return false;
    }
    if (await live.ofClaim(claim)) return false;
    if (!(await releaseRow(row))) return false;
    log.warn({ projectId, batchId: id }, "the message of a batch is gone: it is sent again as a possible repeat");
    return true;
  };

  const expandAgain = async (document: NotificationRecord): Promise<void> => {
    log.warn(
      { projectId: document.projectId, notificationId: document._id },
      "messages of a notification are gone: it is expanded again",
    );
    await expand(document, `again/${now().getTime()}`);
  };

  /** Once the message of a small send is gone, only this sweep publishes its first events. */
  const publishAgain = async ({ _id, projectId }: NotificationRecord): Promise<void> => {
    const found = await sends.findWithEvents(projectId, _id);
    if (!found) return;
    const { document, events } = found;
    const ended = document.final ? [notificationEnded(document, document.final)] : [];
    await Promise.all(
      [notificationAccepted(document, document.content.targets), ...events, ...ended].map(deps.publish),
    );
  };

  /** Batches that have no row, and no message that would make it. */
  const recoverBatches = async (document: NotificationRecord): Promise<void> => {
    const { expanded } = document;
    // A small send is stored with all of its rows.
    if (expanded?.at === undefined || (await live.ofBatches(document, expanded.at))) return;
    if (await queue.restart(document, new Date(now().getTime() + checkAgainMs))) await expandAgain(document);
  };

  const recoverExpansion = async (projectId: ProjectId, id: NotificationId): Promise<void> => {
    if (await live.ofExpansion(projectId, id)) return;
    // Read after the broker was asked: what ended meanwhile has no message any more either.
    const document = await notifications.get(projectId, id);
    if (!document || document.final || document.expanded || document.dueAt || document.expansionLostAt) return;
    if (document.expansion !== "queued") await expandAgain(document);
  };

  const recover: RecoverLostWork["recover"] = async ({ _id, projectId, expanded, sending }) => {
    if (!expanded) return recoverExpansion(projectId, _id);
    if (sending) {
      if (await live.ofClaim(sending)) return;
      await sends.moveToDeliveries(projectId, _id);
    }
    let released = false;
    for (const row of await lost.started(projectId, _id, new Date(now().getTime() - lostAfterMs)))
      released = (await recoverRow(row)) || released;
    const document = await notifications.get(projectId, _id);
    if (!document) return;
    if (!document.final && (await lost.countRoots(projectId, _id)) < expanded.batches) await recoverBatches(document);
    // It was found, or ended a moment ago, by the sweep and not by the process that began it.
    else if (expanded.at === undefined && (released || document.final)) await publishAgain(document);
  };

  return {
    recover,
    release: async (projectId, id) => {
      await sends.moveToDeliveries(projectId, id);
      for (const row of await lost.started(projectId, id, now())) await releaseRow(row);
    },
  };
};
