import { openBucket, publish } from "@herald/bus";
import {
  type ActivityKey,
  ActivityRecord,
  activeActivityKey,
  activityKey,
  JoinActivityV1,
  type NotificationContent,
  SendOneV1,
  SendV1,
} from "@herald/contracts";
import { isUnavailable } from "@herald/kit";
import { activityPriority, broadcastDue, isSmallSend, joinSend, keptMsOf, newestSend } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { activityActionOf, endAtItsTime } from "../domain/activity.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";

type ActivitySendsDeps = Pick<Deps, "bus" | "now" | "log">;

export type ActivitySends = ReturnType<typeof createActivitySends>;

/** The part of dispatch in Live Activities: which state a row sends, and the state for a device whose token came late. */
export const createActivitySends = ({ bus, now, log }: ActivitySendsDeps) => {
  const bucket = openBucket(bus, "push_activities", ActivityRecord);

  /** Publishes a send. Its id follows from the record, so a repeat is the same send. */
  const publishSend = async (send: SendV1): Promise<void> => {
    const options = { id: send.notificationId };
    if (isSmallSend(send)) await publish(bus, SendOneV1, send, options);
    else await publish(bus, SendV1, send, options);
  };

  /** Publishes the newest version: its writer may have died between the record and its send. */
  const publishNewest = async (key: ActivityKey, record: ActivityRecord | undefined): Promise<void> => {
    const send = record && newestSend(key, record);
    if (send) await publishSend(send);
    if (record) await publishBroadcast(key, record);
  };

  const publishBroadcast = async (key: ActivityKey, record: ActivityRecord): Promise<void> => {
    const due = broadcastDue(key, record);
    if (due) await publish(bus, JoinActivityV1, due.data, { id: due.id });
  };

  const currentAction = async (key: ActivityKey, { activity: sent }: NotificationContent) => {
    if (!sent) throw new TypeError("not a notification of an activity");
    for (;;) {
      const entry = await bucket.get(activityKey(key));
      const action = activityActionOf(key, entry?.value, sent);
      if (action.kind === "replaced") {
        if (sent.version !== undefined) await publishNewest(key, entry?.value);
        return action;
      }
      if (action.kind === "push") return { ...action, record: entry?.value };
      const { record } = action;
      await bucket.update(activityKey(key), record, entry?.revision ?? 0, { ttlMs: keptMsOf(record, now()) });
    }
  };

  return {
    /**
     * What a row of an activity's notification sends now; undefined: nothing, because a newer version replaced it. If the record cannot be read, the state of the send itself: iOS ignores it if it
     * is not the newest. Throws only for the end at `ends_at`, which has no state of its own.
     */
    current: async ({ _id, projectId, content }: NotificationRecord): Promise<NotificationContent | undefined> => {
      const { activity } = content;
      if (!activity) return content;
      try {
        const action = await currentAction({ projectId, id: activity.id }, content);
        if (action.kind === "replaced") return undefined;
        const { push, record = {} } = action;
        return { ...content, activity: push, priority: activityPriority(record, push) };
      } catch (error) {
        if (activity.version === undefined || !isUnavailable(error)) throw error;
        log.warn(
          { err: error, notificationId: _id },
          "an activity's record cannot be read: its send goes out as it is",
        );
        return content;
      }
    },

    /** Ends an activity whose time has come, before the audience of its end is read. Repeatable. Throws bus-unavailable. */
    endAtItsTime: async ({ projectId, content: { activity } }: NotificationRecord): Promise<void> => {
      if (activity?.event !== "end" || activity.version !== undefined) return;
      const key = { projectId, id: activity.id };
      for (;;) {
        const entry = await bucket.get(activityKey(key));
        if (!entry) return;
        const record = endAtItsTime(key, entry.value, now());
        // An earlier attempt may have died before it.
        if (!record) return publishBroadcast(key, entry.value);
        const ttlMs = keptMsOf(record, now());
        if (!(await bucket.update(activityKey(key), record, entry.revision, { ttlMs }))) continue;
        await publishBroadcast(key, record);
        return bucket.delete(activeActivityKey(key));
      }
    },

    /** Sends the newest state to a device whose token came. Repeatable. */
    join: async (key: ActivityKey, joined: Parameters<typeof joinSend>[2]): Promise<void> => {
      const record = (await bucket.get(activityKey(key)))?.value;
      if (record) await publishSend(joinSend(key, record, joined));
    },
  };
};
