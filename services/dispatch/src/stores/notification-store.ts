import {
  type Author,
  firstNotificationId,
  type NotificationId,
  type OutboxEvent,
  type PersonalTexts,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import {
  createCounts,
  ensureIndexes,
  findBatched,
  findSome,
  guardStore,
  insertBatched,
  updateBatched,
} from "@herald/mongo";
import { personKeysOf } from "@herald/rules";
import type { Db } from "mongodb";
import { type Expansions, oneExpansion } from "../domain/expansions.ts";
import { emptyTally } from "../domain/notification-counts.ts";
import type { Outcomes } from "../domain/rollout.ts";
import {
  eventsOfSend,
  notificationApproved,
  notificationChanged,
  notificationEnded,
  notificationPaused,
  notificationProposed,
  notificationRejected,
  notificationResumed,
} from "./events.ts";
import {
  expansionOf,
  listNotifications,
  type NotificationDocument,
  type NotificationRecord,
  type NotificationState,
  newDocument,
  newFacts,
  notificationCollection,
  notificationHints,
  notificationIndexes,
  type OutboxCarrier,
  type Paused,
  retiredNotificationIndexes,
  type ShownNotification,
  type Stop,
  shownOnly,
  toRecord,
  toShown,
  toState,
} from "./notification-document.ts";
import {
  abandoned,
  type Counted,
  cancelled,
  cancelledAtOnce,
  checkAfter,
  type Decision,
  paused,
  refused,
  resumed,
  stepOfNew,
  type Timing,
  type Transition,
  toApproved,
  toDeliveringPart,
  toEnd,
  toEstimated,
  toRescheduled,
} from "./notification-steps.ts";

const maxDue = 100;
const stateOnly = { ...shownOnly, content: 0 };

type Inserted = { readonly document: NotificationRecord; readonly outbox: NonNullable<OutboxCarrier["outbox"]> };

/** Notifications, from their acceptance to their final counts. */
export const createNotificationStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const counts = createCounts();

  const insertOne = insertBatched(notifications);
  const updateOne = updateBatched(notifications);
  const findWhole = findBatched(notifications);
  const findShown = findBatched<NotificationDocument, Exclude<keyof NotificationDocument, keyof typeof shownOnly>>(
    notifications,
    shownOnly,
  );
  const findState = findBatched(notifications, stateOnly);
  const findOutbox = findBatched<NotificationDocument, keyof OutboxCarrier>(notifications, { projectId: 1, outbox: 1 });

  const get = async (projectId: ProjectId, id: NotificationId): Promise<NotificationRecord | null> => {
    const found = await findWhole({ _id: id, projectId });
    return found && toRecord(found);
  };

  const getShown = async (projectId: ProjectId, id: NotificationId): Promise<ShownNotification | null> => {
    const found = await findShown({ _id: id, projectId });
    return found && toShown(found);
  };

  const getState = async (projectId: ProjectId, id: NotificationId): Promise<NotificationState | null> => {
    const found = await findState({ _id: id, projectId });
    return found && toState(found);
  };

  /** Makes a transition: the first of them that applies. False when none does. */
  const advance = async (
    projectId: ProjectId,
    _id: NotificationId,
    ...transitions: readonly Transition[]
  ): Promise<boolean> => {
    for (const { filter, update } of transitions)
      if ((await updateOne({ _id, projectId }, filter, update)) === "updated") return true;
    return false;
  };

  /** Makes a transition, with its event if it has one. False when it does not apply. */
  const advanceWith = (
    { _id, projectId }: Pick<NotificationState, "_id" | "projectId">,
    { filter, update }: Transition,
    event: OutboxEvent | undefined,
  ): Promise<boolean> =>
    advance(projectId, _id, { filter, update: { ...update, ...(event && { $push: { outbox: event } }) } });

  /** Ends a notification. Null when it has changed since it was read. */
  const end = async (
    known: NotificationState,
    counted: Counted,
    stop: Stop | undefined = known.stop,
    also?: { readonly set: object; readonly event: OutboxEvent },
  ): Promise<OutboxCarrier | null> => {
    const { _id, projectId, tags } = known;
    const { state, transition } = toEnd(known, counted, stop);
    const ended = notificationEnded({ _id, projectId, ...(tags && { tags }) }, state);
    const updated = await updateOne({ _id, projectId }, transition.filter, {
      ...transition.update,
      ...(also && { $set: { ...transition.update.$set, ...also.set } }),
      $push: { outbox: also ? { $each: [also.event, ended] } : ended },
    });
    if (updated === "not found") return null;
    const written = await findOutbox({ _id, projectId });
    if (updated === "updated") return written;
    // Another process ended it in the meantime and published the event. Publishing the same event again does no harm.
    return written?.outbox?.some(({ id }) => id === ended.id) ? written : null;
  };

  const insert = async (
    state: NotificationState,
    send: Pick<SendV1, "content" | "personal" | "recipients">,
  ): Promise<Inserted | undefined> => {
    const { content, personal } = send;
    const document = { ...state, content, ...(personal && { personal }) };
    const outbox = eventsOfSend(document);
    const inserted = await insertOne({
      ...newDocument(state, send, content.targets),
      outbox,
    });
    return inserted ? { document, outbox } : undefined;
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(notifications, notificationIndexes, retiredNotificationIndexes),
    get,
    getShown,
    getState,

    /** How lines of its upload are read: what its texts show where a line gives no value. */
    getTexts: async (projectId: ProjectId, _id: NotificationId): Promise<PersonalTexts | undefined> => {
      const found = await notifications.findOne({ _id, projectId }, { projection: { personal: 1 } });
      return found?.personal === undefined ? undefined : JSON.parse(found.personal);
    },

    /** Inserts a notification, which waits to be expanded. Undefined when it already exists. */
    insert: (send: SendV1, now: Date, expansions = expansionOf(send)): Promise<Inserted | undefined> => {
      const facts = newFacts(send);
      const sendAt = facts.sendAt && (expansions.list[0]?.at ?? facts.sendAt);
      return insert({ ...facts, ...(sendAt && { sendAt }), expansions, ...stepOfNew(facts, expansions, now) }, send);
    },

    /** Inserts a notification that can never succeed, so that its devices are counted as failed. */
    insertAbandoned: (send: SendV1, now: Date): Promise<Inserted | undefined> =>
      insert(
        {
          ...newFacts(send),
          ...{ step: "accepted", status: "accepted", expansions: oneExpansion(now) },
          stop: { kind: "abandoned", at: now },
        },
        send,
      ),

    /** Inserts a cancelled notification without devices before its send is handled. The send then finds it and does nothing. */
    insertCancelled: (send: SendV1, now: Date): Promise<Inserted | undefined> =>
      insert({ ...newFacts(send), ...cancelledAtOnce(now) }, send),

    /** Changes when a notification is sent that waits for its time. Undefined when it has begun, or changed since it was read. */
    reschedule: async (known: NotificationState, timing: Timing, now: Date): Promise<{ nextAt: Date } | undefined> => {
      const { nextAt, transition } = toRescheduled(known, timing, now);
      const event = notificationChanged(known, { at: now, sendAt: nextAt, zone: timing.content.time_zone });
      return (await advanceWith(known, transition, event)) ? { nextAt } : undefined;
    },

    /** Makes a transition of `notification-steps.ts`. False when it does not apply. */
    advance: (projectId: ProjectId, id: NotificationId, transition: Transition): Promise<boolean> =>
      advance(projectId, id, transition),

    /** Records that an expansion was dead-lettered: registry partitions no page after the dead one. */
    expansionLost: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<void> => {
      await advance(projectId, id, ...toDeliveringPart(now));
    },

    /** Records that the send can never succeed. Batches that registry still partitions for it are counted as failed. */
    abandon: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<void> => {
      await advance(projectId, id, ...abandoned(now));
    },

    /** Cancels a notification that is being sent. Pushes already sent still have to be counted. False when it has changed since it was read. */
    cancelBegun: async ({ _id, projectId, stop }: NotificationState, now: Date): Promise<boolean> =>
      // The time of the first cancel counts.
      stop?.kind === "cancelled" || (await advance(projectId, _id, cancelled(now))),

    /** Pauses a notification. False when it is paused, was stopped or has ended since it was read. */
    pause: (known: NotificationState, pause: Paused, judged?: Expansions): Promise<boolean> => {
      return advanceWith(known, paused(pause, judged), notificationPaused(known, pause));
    },

    /** Resumes a notification. False when it is not paused. */
    resume: (known: NotificationState, at: Date, by: Author, before?: Outcomes): Promise<boolean> => {
      return advanceWith(known, resumed(before), notificationResumed(known, at, by));
    },

    /** Sends what was proposed. False when it was decided on, or its audience changed, since it was read. */
    approve: (known: NotificationState, how: Omit<Timing, "content"> & Decision): Promise<boolean> => {
      const { at, by, reason } = how;
      return advanceWith(known, toApproved(known, how), by && notificationApproved(known, { at, by, reason }));
    },

    /** The audience of a proposal. `isNew`: it is proposed now, because its upload is complete. */
    estimate: (known: NotificationState, devices: number, isNew?: Date): Promise<boolean> => {
      const { approval } = known;
      const event = isNew && approval && notificationProposed(known, { ...approval, devices }, isNew);
      return advanceWith(known, toEstimated(known, devices), event);
    },

    /** Cancels what was proposed. Null when it was decided on since it was read. */
    reject: (known: NotificationState, decision: Decision): Promise<OutboxCarrier | null> =>
      end(
        known,
        { tally: emptyTally, failures: {}, now: decision.at },
        { kind: "cancelled", at: decision.at },
        { set: refused(decision), event: notificationRejected(known, decision) },
      ),

    /** Makes the sweep check now what waits although its time, or that of its first wave, has come: of a project, or of all. */
    checkScheduled: async ({ projectId }: { readonly projectId?: ProjectId }, now: Date): Promise<void> => {
      // A project's by their status: the index of times has what waits of all projects.
      const ofProject = { projectId, status: { $in: ["scheduled", "sending"] }, byStatus: { $exists: true } } as const;
      await notifications.updateMany(
        { ...(projectId && ofProject), step: "scheduled", sendAt: { $lte: now }, nextAt: { $exists: true } },
        { $set: { nextAt: now } },
        { hint: projectId ? notificationHints.status : notificationHints.next },
      );
    },

    /** Cancels a notification that waits for its `send_at`, so it has no devices. Null when it does not wait. */
    cancelScheduled: (document: NotificationState, now: Date): Promise<OutboxCarrier | null> =>
      end(document, { tally: emptyTally, failures: {}, now }, { kind: "cancelled", at: now }),

    /** Ends a notification with its counts. Null when it has changed since `document` was read. */
    finish: (document: NotificationState, counted: Counted): Promise<OutboxCarrier | null> => end(document, counted),

    /** Adds devices that were partitioned after the end to the final counts. A caller with fewer devices changes nothing. */
    amend: async (projectId: ProjectId, id: NotificationId, { tally, failures }: Omit<Counted, "now">) => {
      await notifications.updateOne(
        { _id: id, projectId, "end.tally.devices": { $lt: tally.devices } },
        { $set: { "end.tally": tally, "end.failures": failures } },
      );
    },

    /** Claims up to {@link maxDue} notifications whose check is due. Of two callers, only the first gets a notification. */
    takeUnchecked: async (now: Date): Promise<NotificationState[]> => {
      const options = { sort: { nextAt: 1 }, limit: maxDue, projection: stateOnly } as const;
      const filter = { nextAt: { $exists: true, $lte: now } };
      const due = await findSome(notifications, filter, { hint: notificationHints.next, ...options });
      const taken: NotificationState[] = [];
      for (const document of due) {
        const { _id, projectId, nextAt } = document;
        const { modifiedCount } = await notifications.updateOne(
          { _id, projectId, ...(nextAt && { nextAt }) },
          { $set: { nextAt: checkAfter(now) } },
        );
        if (modifiedCount === 1) taken.push(toState(document));
      }
      return taken;
    },

    /**
     * Notifications after the id `after`, in order of their ids, that ended before `before` and whose events are published. None that was
     * accepted after `before` can have ended before it. So ids, which contain the time, bound the search without an index on the end.
     */
    endedBefore: (
      before: Date,
      after: string | undefined,
      limit: number,
    ): Promise<Pick<NotificationState, "_id" | "projectId">[]> =>
      findSome(
        notifications,
        {
          _id: { $lt: firstNotificationId(before), ...(after !== undefined && { $gt: after as NotificationId }) },
          "end.at": { $lt: before },
          outbox: { $exists: false },
        },
        { hint: "_id_", sort: { _id: 1 }, limit, projection: { projectId: 1 } },
      ),

    /** Removes notifications of any projects. */
    removeAll: async (documents: readonly Pick<NotificationState, "_id" | "projectId">[]) => {
      const projectIds = [...new Set(documents.map(({ projectId }) => projectId))];
      await notifications.deleteMany({
        projectId: { $in: projectIds },
        _id: { $in: documents.map(({ _id }) => _id) },
      });
    },

    /** How many of a project's notifications wait for lines of an upload; at most `limit`. */
    countUploads: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments(
        { projectId, step: { $in: ["approval", "accepted", "expanding"] }, upload: true },
        { hint: notificationHints.steps, limit },
      ),

    /** Adds a target to those by which an erasure finds the notification: the only recipient of its upload. */
    addPerson: async (projectId: ProjectId, _id: NotificationId, target: string): Promise<void> => {
      const userKeys = { $each: personKeysOf(projectId, [target]) };
      await notifications.updateOne({ _id, projectId }, { $addToSet: { userKeys } });
    },

    /** Records that the first `pages` chunks of its recipients are expanded. Repeatable. */
    pagesExpanded: async (projectId: ProjectId, _id: NotificationId, pages: number): Promise<void> => {
      await notifications.updateOne({ _id, projectId }, { $max: { pagesExpanded: pages } });
    },

    list: listNotifications(notifications, counts),

    /** Up to `limit` of a project's notifications, oldest first, for deletion. */
    ofProject: (projectId: ProjectId, limit: number): Promise<Pick<NotificationState, "_id" | "projectId">[]> => {
      const options = { hint: notificationHints.list, sort: { _id: 1 }, limit, projection: { projectId: 1 } } as const;
      return findSome(notifications, { projectId }, options);
    },
  });
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;
