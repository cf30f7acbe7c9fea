import { randomUUID } from "node:crypto";
import { type Bus, openBucket, publish, shareOfRoom } from "@herald/bus";
import {
  type ActivityId,
  type ActivityKey,
  ActivityRecord,
  activeActivityKey,
  activityKey,
  activityLimits,
  type DeviceId,
  JoinActivityV1,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { HeraldError, type Logger, notFound } from "@herald/kit";
import {
  broadcastDue,
  firstSends,
  joinKeptMs,
  joinKey,
  keptMsOf,
  laterJoin,
  newestSend,
  newestSendId,
  type Written,
} from "@herald/rules";
import { z } from "zod";
import type { FixedLimits } from "../fixed-limits.ts";
import { createQueueQuota } from "../limits/queue-quota.ts";

/** Above this part of the bucket no activity begins, of whichever project; those that run can still be written. */
const fullPart = 0.9;
const measureEveryMs = 1_000;
const bucketRetrySeconds = 60;
/** A place comes back when an activity ends, or after hours. */
const quotaRetrySeconds = 60;
/** Writers of one activity that collide: more than the limit of versions lets through. */
const maxTries = 20;

type Deps = {
  readonly bus: () => Bus;
  readonly limits: Pick<FixedLimits, "activeActivities" | "activityBytes">;
  readonly now: () => Date;
  readonly log: Logger;
};

/** The records of Live Activities, on the bus: writing one needs no database. All methods throw bus-unavailable. */
export const createActivityStore = ({ bus, limits, now, log }: Deps) => {
  const bucket = () => openBucket(bus(), "push_activities", ActivityRecord);
  const places = () => openBucket(bus(), "push_activities", z.object({}));
  const refusal = (what: string) => () =>
    new HeraldError("quota-exceeded", `activity: ${what}; retry in ${quotaRetrySeconds} s`, {
      retryAfterSeconds: quotaRetrySeconds,
    });
  const active = createQueueQuota({
    limitOf: () => ({ messages: limits.activeActivities, bytes: Number.POSITIVE_INFINITY }),
    count: async (projectId: ProjectId) => (await bucket().keys(`active.${projectId}.*`)).length,
    refusal: refusal(`a project may have ${limits.activeActivities} active activities; end one`),
    now,
    log,
  });
  let fill = { at: Number.NEGATIVE_INFINITY, isFull: false, share: Number.POSITIVE_INFINITY };
  const kept = createQueueQuota({
    limitOf: () => ({ messages: Number.POSITIVE_INFINITY, bytes: Math.min(limits.activityBytes, fill.share) }),
    count: async (projectId: ProjectId) => (await bucket().keys(`${projectId}.*`)).length,
    refusal: ({ bytes }) =>
      refusal(
        `a project may have ${bytes} bytes of activities, kept for 14 hours each${bytes < limits.activityBytes ? ", while the room of all projects is nearly used up" : ""}`,
      )(),
    now,
    log,
  });

  const checkRoom = async (): Promise<void> => {
    const at = now().getTime();
    if (Math.abs(at - fill.at) >= measureEveryMs) {
      const { bytes, maxBytes } = await bucket().fill();
      fill = { at, isFull: maxBytes > 0 && bytes > maxBytes * fullPart, share: shareOfRoom({ bytes, maxBytes }) };
    }
    if (fill.isFull)
      throw new HeraldError("queue-full", "activity: the room for activities is used up; running ones can be written", {
        retryAfterSeconds: bucketRetrySeconds,
      });
  };

  /** Throws validation-failed for a record that is too large. */
  const bytesOf = ({ channels: _, ...record }: ActivityRecord): number => {
    const bytes = Buffer.byteLength(JSON.stringify(record));
    if (bytes > activityLimits.recordBytes)
      throw new HeraldError(
        "validation-failed",
        `activity: takes ${bytes} bytes, and at most ${activityLimits.recordBytes} are accepted; use fewer or shorter targets, or a topic`,
      );
    return bytes;
  };

  const find = async (key: ActivityKey): Promise<ActivityRecord | undefined> =>
    (await bucket().get(activityKey(key)))?.value;

  const admit = async ({ projectId }: ActivityKey, bytes: number) => {
    await checkRoom();
    await active.admit(projectId, bytes);
    try {
      await kept.admit(projectId, bytes);
    } catch (error) {
      active.refund(projectId, bytes);
      throw error;
    }
    return () => {
      active.refund(projectId, bytes);
      kept.refund(projectId, bytes);
    };
  };

  return {
    find,

    /** Stores a new activity. Resolves to the stored one: this, or that of an earlier request. Throws quota-exceeded and queue-full. */
    create: async (key: ActivityKey, record: ActivityRecord): Promise<ActivityRecord> => {
      const known = await find(key);
      if (known) return known;
      const refund = await admit(key, bytesOf(record));
      let created = false;
      try {
        // First: a record without it would not count.
        const runsMs = record.endsAt - record.createdAt;
        await places().put(activeActivityKey(key), {}, { ttlMs: Math.max(1_000, runsMs) });
        created = await bucket().create(activityKey(key), record, { ttlMs: keptMsOf(record, now()) });
      } finally {
        if (!created) refund();
      }
      return created ? record : ((await find(key)) ?? record);
    },

    /**
     * Changes a record by compare-and-set. Resolves to the result, with the newest record. `check` may refuse the new record. Throws
     * activity-not-found.
     */
    write: async (
      key: ActivityKey,
      change: (record: ActivityRecord) => Written,
      check: (record: ActivityRecord) => void,
    ): Promise<
      (Exclude<Written, { kind: "written" }> & { record: ActivityRecord }) | (Written & { kind: "written" })
    > => {
      for (let tries = 0; tries < maxTries; tries++) {
        const entry = await bucket().get(activityKey(key));
        if (!entry) throw notFound("activity-not-found", "id", activityHint);
        const written = change(entry.value);
        if (written.kind !== "written") return { ...written, record: entry.value };
        const { record } = written;
        bytesOf(record);
        check(record);
        const ttlMs = keptMsOf(record, now());
        if (await bucket().update(activityKey(key), record, entry.revision, { ttlMs })) return written;
      }
      throw new HeraldError("overloaded", "activity: too many writers change it at a time", { retryAfterSeconds: 1 });
    },

    /**
     * Sends the newest state to a device whose token came late or changed: at once for each version, and to its last token of a minute if it
     * has the version already, because an app may replace its token at any rate. Resolves to whether it is a send of its own. Repeatable.
     */
    join: async (
      key: ActivityKey,
      record: Pick<ActivityRecord, "version">,
      token: { readonly deviceId: DeviceId; readonly tokenHash: string; readonly at: string },
    ) => {
      const { deviceId } = token;
      const claim = (what: string) => places().create(joinKey(key, deviceId, what), {}, { ttlMs: joinKeptMs });
      const joined = { projectId: key.projectId, activityId: key.id, ...token };
      if (await claim(`${record.version}`)) {
        await publish(bus(), JoinActivityV1, joined, { id: randomUUID() });
        return true;
      }
      const later = laterJoin(deviceId, now());
      const isNew = await claim(`at${later.getTime()}`);
      // Also if it is not new: the one who claimed it may have died before this.
      const sendAt = later.toISOString();
      await publish(
        bus(),
        JoinActivityV1,
        { ...joined, sendAt },
        { id: `${key.projectId}/${key.id}/${deviceId}/${sendAt}` },
      );
      return isNew;
    },

    /** Sends the newest version to the channels of the activity, beside the sends of the version. Repeatable. */
    broadcast: async (key: ActivityKey, record: ActivityRecord): Promise<void> => {
      const due = broadcastDue(key, record);
      if (due) await publish(bus(), JoinActivityV1, due.data, { id: due.id });
    },

    /** Its place is free. Repeatable. */
    release: async (key: ActivityKey): Promise<void> => bucket().delete(activeActivityKey(key)),
  };
};

export const activityHint = "it does not exist, or ended more than a few hours ago";

/** The sends of a record's newest version. */
export const sendsOf = (projectId: ProjectId, id: ActivityId, record: ActivityRecord): SendV1[] => {
  const key = { projectId, id };
  if (record.version === 1) return firstSends(key, record);
  const send = newestSend(key, record);
  return send ? [send] : [];
};

/** The answer to a write. */
export const versionOf = (key: ActivityKey, record: ActivityRecord) => ({
  id: key.id,
  version: record.version,
  notification_id: newestSendId(key, record),
});
