import { setTimeout as sleep } from "node:timers/promises";
import { type Bus, handleRequest, lastMessage, type RequestListener } from "@herald/bus";
import {
  type Approval,
  idTime,
  type Notification,
  type NotificationId,
  notificationRequests,
  type ProjectId,
  readGroup,
  SendGroupV1,
  SendOneV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { HeraldError, LRUCache, notFound } from "@herald/kit";
import { encodeAfter } from "@herald/mongo";
import { exportPage } from "@herald/service";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { stateMaxAgeMs } from "../delivery/notification-cache.ts";
import { shownRollout, shownWaves } from "../domain/expansions.ts";
import { emptyTally, shownCounts } from "../domain/notification-counts.ts";
import type { Sweeps } from "../jobs/sweeps.ts";
import type { Ledger, Sums } from "../stores/ledger.ts";
import {
  expansionOf,
  type NotificationState,
  newFacts,
  type ShownNotification,
  type StoredApproval,
  shownStatus,
} from "../stores/notification-document.ts";
import { stepOfNew, toLastExpansion } from "../stores/notification-steps.ts";

const dayMs = 86_400_000;

/** Where an accepted notification is: in the database, or still in the stream. */
export type Place = { readonly document: ShownNotification } | { readonly send: SendV1 };

export type FindNotification = (projectId: ProjectId, id: NotificationId) => Promise<Place>;

/**
 * Finds a notification in the database, then in its message, in a backlog, in the message of a large send, and in the database again. So it
 * finds every id that Herald issued, even if the notification moves on this way during the search.
 * Throws HeraldError `notification-gone` for an id so old that its notification may have been removed, `notification-not-found` for
 * any other.
 */
export const createFindNotification =
  (
    bus: Bus,
    { notifications, sendGroups }: Pick<DeliveryDeps, "notifications" | "sendGroups">,
    { keepMs, now }: { readonly keepMs: number; readonly now: () => Date },
  ): FindNotification =>
  async (projectId, notificationId) => {
    const stored = await notifications.getShown(projectId, notificationId);
    if (stored) return { document: stored };
    const id = { projectId, notificationId };
    const groupId = sendGroupOf(notificationId);
    const [group, retried] = await Promise.all([
      lastMessage(bus, "PUSH_SEND", SendGroupV1.subject({ groupId } as SendGroupV1), SendGroupV1),
      lastMessage(bus, "PUSH_SEND", SendOneV1.subject(id as SendOneV1), SendOneV1),
    ]);
    // Subjects of small sends do not contain the project: without this check, another project could guess an id.
    const small = [retried?.data, ...(group ? readGroup(group.data).sends : [])].find(
      (one) => one?.notificationId === notificationId && one.projectId === projectId,
    );
    const send =
      small ??
      (await sendGroups.find(projectId, notificationId)) ??
      (await lastMessage(bus, "PUSH_CMD", SendV1.subject(id as SendV1), SendV1))?.data;
    if (send) return { send };
    const document = await notifications.getShown(projectId, notificationId);
    if (document) return { document };
    // The id contains its creation time, so Herald need not store the ids of removed notifications.
    if (now().getTime() - idTime(notificationId).getTime() > keepMs)
      throw new HeraldError(
        "notification-gone",
        `notifications are kept for ${Math.floor(keepMs / dayMs)} days after their end; ${notificationId} is older`,
      );
    throw notFound("notification-not-found", "id");
  };

/**
 * A notification in the database. One that is not there yet is stored, unless `check` throws: its message then finds it, and continues it as
 * a large send.
 */
export const getStored = async (
  deps: Pick<DeliveryDeps, "expansionSteps" | "notifications" | "now" | "recipients"> & {
    readonly find: FindNotification;
  },
  projectId: ProjectId,
  id: NotificationId,
  check?: (send: SendV1) => void,
): Promise<ShownNotification> => {
  for (;;) {
    const found = await deps.find(projectId, id);
    if ("document" in found) return found.document;
    check?.(found.send);
    await deps.notifications.insert(found.send, deps.now(), await deps.expansionSteps.planOf(found.send));
    await deps.recipients.insert(found.send, deps.now());
  }
};

/** A notification after a change, with the events of the change published. */
export const readChanged = async (
  { notifications, outbox }: Pick<DeliveryDeps, "notifications" | "outbox">,
  projectId: ProjectId,
  id: NotificationId,
): Promise<ShownNotification> => {
  const document = await notifications.getShown(projectId, id);
  if (!document) throw notFound("notification-not-found", "id");
  await outbox.flushNotification(document);
  return document;
};

/** Whether registry has still to expand it. */
const hasNext = ({ step }: NotificationState): boolean =>
  step === "scheduled" || step === "accepted" || step === "expanding";

const approvalView = ({
  status,
  limit,
  devices,
  sender,
  expiresAt,
  by,
  at,
  reason,
}: Pick<Approval, "status"> & Omit<StoredApproval, "status">): Approval => ({
  ...{ status, limit, sender, expires_at: expiresAt.toISOString() },
  ...(devices !== undefined && { devices }),
  ...(by && { by }),
  ...(at && { at: at.toISOString() }),
  ...(reason !== undefined && { reason }),
});

/** A notification as the API shows it. `sums` are the sums of its ledger; a final notification stores its own. */
export const notificationView = (document: ShownNotification, sums?: Sums): Notification => {
  const { _id, content, acceptedAt, paused, expanded, end } = document;
  const status = shownStatus(document);
  const { tally, failures } = end ?? sums ?? { tally: emptyTally, failures: {} };
  return {
    ...content,
    id: _id,
    // A later wave, or part of a rollout, may have devices that match.
    unmatched: (!hasNext(document) && expanded?.unmatched) || [],
    created_at: acceptedAt.toISOString(),
    status,
    counts: shownCounts(tally, end ? undefined : expanded?.devices),
    failures: { ...failures },
    skips: { ...tally.skips },
    ...(document.expansions?.local && document.step !== "approval" && { schedule: shownWaves(document) }),
    rollout: content.rollout && shownRollout(document, { tally, failures }),
    ...(document.approval && {
      approval: approvalView({ status: end ? "cancelled" : "proposed", ...document.approval }),
    }),
    ...(status === "paused" && paused && { paused: { ...paused, at: paused.at.toISOString() } }),
    ...(end && { completed_at: end.at.toISOString() }),
  };
};

/** Whether devices of a notification may have been addressed. */
const isBegun = ({ step, expanded }: NotificationState): boolean =>
  !(step === "scheduled" || step === "approval") || expanded !== undefined;

/** Counts of smaller notifications are exact. Counts of larger ones may be a little old, as the API documents. */
const exactBelow = 10_000;
/** Reloading a page during a send to a million devices must not read 2,000 rows each time. */
const oldestMs = 2_000;
const maxRemembered = 200;

/** The sums of a notification's rows while it is being sent. */
export const createRecentSums = (ledger: Pick<Ledger, "sums">, now: () => Date) => {
  const remembered = new LRUCache<NotificationId, { sums: Sums; at: number }>({ max: maxRemembered });
  return async (projectId: ProjectId, id: NotificationId): Promise<Sums> => {
    const known = remembered.get(id);
    const at = now().getTime();
    if (known && at - known.at < oldestMs) return known.sums;
    remembered.delete(id);
    const sums = await ledger.sums(projectId, id);
    if (sums.tally.devices >= exactBelow) remembered.set(id, { sums, at });
    return sums;
  };
};

export type RecentSums = ReturnType<typeof createRecentSums>;

/** A stored notification as the API shows it, with its counts. */
export const viewOf = async (document: ShownNotification, sumsOf: RecentSums): Promise<Notification> =>
  document.end || !isBegun(document)
    ? notificationView(document)
    : notificationView(document, await sumsOf(document.projectId, document._id));

type NotificationRequestDeps = Pick<
  DeliveryDeps,
  "bus" | "cache" | "deliveries" | "finisher" | "notifications" | "now" | "outbox"
> & {
  readonly find: FindNotification;
  readonly sumsOf: RecentSums;
  readonly sweeps: Pick<Sweeps, "sweepDue">;
};

/** After this time, no process begins another chunk of a cancelled or paused notification. The 10 ms are for timers that fire early. */
export const stopPropagationMs = stateMaxAgeMs + 10;

export const handleNotificationRequests = (deps: NotificationRequestDeps): RequestListener[] => {
  const { bus, find, notifications, deliveries, sumsOf, cache, sweeps, finisher, now } = deps;

  const view = (document: ShownNotification): Promise<Notification> => viewOf(document, sumsOf);

  /** True when the notification was being sent: other processes may not have noticed the cancel yet. */
  const cancel = async (projectId: ProjectId, notificationId: NotificationId): Promise<boolean> => {
    for (;;) {
      const found = await find(projectId, notificationId);
      if ("send" in found) {
        const cancelled = await notifications.insertCancelled(found.send, now());
        if (cancelled) return false;
        continue;
      }
      const { document } = found;
      if (document.end)
        throw new HeraldError(
          "notification-final",
          `the notification is ${document.status}: nothing is left to cancel`,
        );
      const { expansions, step } = document;
      if (expansions && expansions.n > 0 && step === "scheduled") {
        // The others do not take place, and the devices addressed so far are counted.
        const last = toLastExpansion({ expansions }, now(), true);
        if (!(await notifications.advance(projectId, notificationId, last))) continue;
        await finisher.check(projectId, notificationId);
        return true;
      }
      const waits = step === "scheduled" || step === "approval";
      const done = waits
        ? await notifications.cancelScheduled(document, now())
        : await notifications.cancelBegun(document, now());
      // Otherwise its state has changed since it was read: find it again.
      if (done) return !waits;
    }
  };

  return [
    handleRequest(bus, notificationRequests.get, async ({ projectId, notificationId }) => {
      const found = await find(projectId, notificationId);
      return "document" in found ? view(found.document) : unstoredView(found.send, now());
    }),

    handleRequest(bus, notificationRequests.list, async ({ projectId, page, ...filter }) => {
      const found = await notifications.list(projectId, filter, page);
      return { ...found, data: await Promise.all(found.data.map(view)) };
    }),

    handleRequest(
      bus,
      notificationRequests.export,
      ({ projectId, after: first, limit, createdAfter, createdBefore, ...filter }, { signal }) =>
        exportPage({ after: first, limit }, signal, async (after, perPage) => {
          const key = after === undefined ? "" : encodeAfter(after);
          const page = { by: "key", after: key, perPage, createdAfter, createdBefore } as const;
          const { data, ...found } = await notifications.list(projectId, filter, page);
          const hasMore = "next" in found && found.next !== null;
          return { rows: await Promise.all(data.map(view)), next: hasMore ? (data.at(-1)?._id ?? null) : null };
        }),
    ),

    handleRequest(bus, notificationRequests.cancel, async ({ projectId, notificationId }) => {
      const begun = await cancel(projectId, notificationId);
      cache.cancel(notificationId);
      const propagated = begun ? sleep(stopPropagationMs) : undefined;
      await deliveries.makeDue(projectId, notificationId, now());
      void sweeps.sweepDue();
      const document = await readChanged(deps, projectId, notificationId);
      await propagated;
      return view(document);
    }),
  ];
};

/** An accepted notification that is not in the database yet. */
export const unstoredView = (send: SendV1, now: Date): Notification => {
  const facts = newFacts(send);
  return notificationView({ ...facts, ...stepOfNew(facts, expansionOf(send), now), content: send.content });
};
