import { fromOrigin } from "@herald/bus";
import type {
  DeliverBatchV1,
  DeviceId,
  GroupedSend,
  NotificationId,
  OutboxEvent,
  ProjectId,
  SendV1,
} from "@herald/contracts";
import { type FairGate, HeraldError } from "@herald/kit";
import { rootBatchId } from "../domain/batch-ids.ts";
import { addFailures, addTallies, noDevices as emptyTally } from "../domain/counts.ts";
import { finalStatus } from "../domain/notification-status.ts";
import type { Settlement } from "../domain/settle-batch.ts";
import type { CarryOut } from "../sending/carry-out.ts";
import type { CheckWaiting } from "../sending/check-recipients.ts";
import type { Finisher } from "../sending/finisher.ts";
import { isUnavailable, keepTrying } from "../sending/keep-trying.ts";
import type { NotificationWatch, Watched } from "../sending/notification-watch.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { allAccepted, type DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationRecord, Told } from "../stores/notification-document.ts";
import { notificationAccepted, notificationEnded } from "../stores/notification-events.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import type { Resolution, ResolveSend } from "./resolve-sends.ts";

export type DeliverSendsDeps = {
  readonly resolve: ResolveSend;
  /** How many are carried out at a time, in all and by project; those that wait for their turn cost their memory alone. */
  readonly gate: FairGate;
  /** Gives a send to the path for large ones. Repeatable. */
  readonly handOn: (send: SendV1) => Promise<void>;
  readonly notifications: NotificationStore;
  readonly deliveries: DeliveryStore;
  readonly carryOut: CarryOut;
  readonly checkWaiting: CheckWaiting;
  readonly finisher: Pick<Finisher, "check">;
  readonly watch: NotificationWatch;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  /** Publishes what a row was settled with. Never throws. */
  readonly announce: (told: Told | { _id: string; projectId: ProjectId; outbox: OutboxEvent[] }) => Promise<void>;
  readonly now: () => Date;
};

const noDevices: ReadonlySet<DeviceId> = new Set();

/** The message that some sends came in. */
export type SendMessage = {
  readonly claim: Claim;
  /** It came before, and nobody knows how far it got. */
  readonly redelivered: boolean;
  readonly signal: AbortSignal;
};

/**
 * Carries out sends to few devices from their audience to their last event: resolve, store, push, settle, end. The message that brought
 * them is acked after all of that, so it is their outbox and their lease at once.
 * Rejects when one of them has to be tried again; the others are done by then, and find that out when they come again.
 */
export const createDeliverSends = (deps: DeliverSendsDeps) => {
  const { resolve, gate, handOn, notifications, deliveries, carryOut, checkWaiting, finisher, watch, publish, now } =
    deps;

  /** What registry found fits what was stored first: batches that came since are left out, those that are gone are empty. */
  const batchesOf = ({ _id, projectId, expanded }: NotificationRecord, { batches }: Resolution): DeliverBatchV1[] =>
    Array.from({ length: expanded?.batches ?? 0 }, (_, n) => ({
      batchId: rootBatchId(_id, n),
      projectId,
      notificationId: _id,
      lane: "direct",
      platform: batches[n]?.platform ?? "ios",
      devices: batches[n]?.devices ?? [],
    }));

  /** Undefined when another message has the batch, or it was settled before. */
  const deliver = async (batch: DeliverBatchV1, watched: Watched, { claim, signal }: SendMessage) => {
    const run = await deliveries.startKept(batch, claim, now());
    if (!run) return undefined;
    // A first attempt goes to devices that registry named a moment ago.
    const again = run.starts > 1;
    const moved = again ? await checkWaiting(run.projectId, run.devices, watched.personal) : noDevices;
    const { settlement, version } = await carryOut.send(run, watched, moved, signal);
    const at = now();
    // What was sent is sent: while the database is unavailable the outcomes are kept here, and nowhere else.
    const events = await keepTrying(() => deliveries.settle(run, settlement, at, { publishes: true }), signal);
    if (events === undefined) return undefined;
    if (settlement.waiting) await carryOut.follow(run, { version });
    return { run, settlement, events };
  };

  /** The end of a notification whose batches were all settled here; undefined where the ledger has to be asked. */
  const end = async (
    document: NotificationRecord,
    settlements: readonly (Settlement | undefined)[],
    signal: AbortSignal,
  ): Promise<OutboxEvent | undefined> => {
    const whole = settlements.filter((one) => one !== undefined && one.waiting === undefined) as Settlement[];
    if (whole.length < settlements.length) return undefined;
    const tally = whole.reduce((sum, one) => addTallies(sum, one.tally), emptyTally);
    const failures = whole.reduce((sum, one) => addFailures(sum, one.failures), {});
    const final = { status: finalStatus(false, tally), at: now(), tally, failures };
    const ended = await keepTrying(() => notifications.finishResolved(document, final), signal);
    return ended ? notificationEnded(document, final) : undefined;
  };

  /** The events of what was done before this process, or its earlier try, could publish them; under the same ids. */
  const publishAgain = async (projectId: ProjectId, id: NotificationId): Promise<void> => {
    const document = await notifications.get(projectId, id);
    if (!document) return;
    const events = await deliveries.acceptedEvents(projectId, id);
    const all = [notificationAccepted(document, document.content.targets), ...events];
    if (document.final) all.push(notificationEnded(document, document.final));
    await Promise.all(all.map(publish));
  };

  const carryOutOne = async (send: GroupedSend, resolution: Resolution, message: SendMessage): Promise<void> => {
    const { projectId, notificationId } = send;
    const { batches, unmatched } = resolution;
    const devices = batches.reduce((sum, batch) => sum + batch.devices.length, 0);
    const expanded = { batches: batches.length, devices, unmatched: [...unmatched] };
    const inserted = await notifications.insertResolved(send, expanded, now());
    const document = inserted ?? (await notifications.get(projectId, notificationId));
    if (!document) return; // its project is deleted
    if (document.final) return publishAgain(projectId, notificationId);
    // It went the other way before, or is to be expanded because its message was given up.
    if (!document.expanded) return handOn(send);
    const watched = watch.pin(document);
    try {
      const delivered = await Promise.all(
        batchesOf(document, resolution).map((batch) => deliver(batch, watched, message)),
      );
      const ended = await end(
        document,
        delivered.map((one) => one?.settlement),
        message.signal,
      );
      const events = [notificationAccepted(document, send.content.targets)];
      for (const one of delivered) {
        if (one === undefined) continue;
        if (allAccepted(one.settlement)) events.push(...one.events);
        else await deps.announce({ _id: one.run._id, projectId, outbox: one.events });
      }
      await Promise.all((ended ? [...events, ended] : events).map(publish));
      if (!ended) await finisher.check(projectId, notificationId);
      // What an earlier try settled may have failed to be published, also where that try was this process's own.
      if (message.redelivered || delivered.includes(undefined)) await publishAgain(projectId, notificationId);
    } finally {
      watch.unpin(notificationId);
    }
  };

  const one = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    // A project with so much waiting goes the way of large sends, whose queues are on disk.
    const leave = await gate.enter(send.projectId, 1).catch((error: unknown) => {
      if (error instanceof HeraldError && error.code === "rate-limited") return undefined;
      throw error;
    });
    if (leave === undefined) return handOn(send);
    try {
      const resolution = await resolve(send);
      await (resolution ? carryOutOne(send, resolution, message) : handOn(send));
    } finally {
      leave();
    }
  };

  return async (sends: readonly GroupedSend[], message: SendMessage): Promise<void> => {
    const all = await Promise.allSettled(
      sends.map((send) => fromOrigin("deliver send", send.origin, () => one(send, message))),
    );
    const failed = all.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    // What waits for something to come back uses nothing up; it comes again together with the others that failed.
    if (failed.length > 0) throw failed.find(isUnavailable) ?? failed[0];
  };
};

export type DeliverSends = ReturnType<typeof createDeliverSends>;
