import type { ActivityKey, ActivityRecord, DeviceId } from "@herald/contracts";
import { createShares, HeraldError } from "@herald/kit";
import { newestSendId, unsentChannels } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { channelsDueAt } from "../domain/activity.ts";
import type { ActivityChannels } from "./activity-channels.ts";
import type { ActivitySends } from "./activity-sends.ts";
import type { DueMessages } from "./follow-up.ts";
import type { NotificationCache } from "./notification-cache.ts";
import type { Pipeline } from "./pipeline.ts";

/** The notification of a version is stored by then, unless it waits in its project's backlog. */
const storedWithinMs = 3_000;
/** A version that must wait is tried again after a quarter of its age; after so long at most, where Apple fails or it is paused. */
const retry = { firstMs: 1_000, ageShare: 0.25, failedMs: 30_000, pausedMs: 120_000 } as const;
const never = Number.POSITIVE_INFINITY;
/** Activities of all projects, and of one, that a process tends at a time: others, and devices that join, must not wait for a slow endpoint. */
const atATime = { total: 128, perKey: 32 } as const;

type TendDeps = Pick<Deps, "now"> & {
  readonly activities: ActivitySends;
  readonly cache: NotificationCache;
  readonly channels: ActivityChannels;
  readonly dueMessages: DueMessages;
  readonly pipeline: Pipeline;
};

/**
 * Does what is due for an activity's channels: broadcasts the newest version, which obeys what stops or holds its notification, and cleans up.
 * Repeatable: by the timestamp of its state, a second broadcast changes no card.
 */
export const createTendActivity = ({ activities, cache, channels, dueMessages, pipeline, now }: TendDeps) => {
  const shares = createShares(atATime.total, atATime.perKey);

  /** Resolves to the longest time until it must be tried again. */
  const broadcast = async (key: ActivityKey, record: ActivityRecord, signal: AbortSignal): Promise<number> => {
    const due = unsentChannels(record);
    if (due.length === 0) return never;
    const at = now().getTime();
    const cached = await cache.get(key.projectId, newestSendId(key, record));
    if (!cached && at - record.writtenAt < storedWithinMs)
      throw new HeraldError("service-unavailable", "the notification of the version is not stored yet");
    if (!cached) return at < channelsDueAt(record) ? retry.failedMs : never;
    const content = await activities.current(cached.document);
    // A newer version has a message of its own.
    if (!content) return never;
    const waits = due.map(async ([name, { id = "", sent }]) => {
      const [app = "", environment] = name.split("/") as [string, "production" | "sandbox"];
      const channel = { id: id as DeviceId, token: id, tokenAt: 0, app, environment, broadcast: true as const };
      const { outcomes, stop } = await pipeline.broadcast(cached, channel, content, signal);
      const [outcome] = outcomes;
      if (outcome?.kind !== "accepted" && outcome?.kind !== "rejected") {
        if (stop === undefined) return retry.failedMs;
        return stop.kind === "paused" || stop.kind === "held" ? retry.pausedMs : never;
      }
      const problem = outcome.kind === "rejected" ? outcome.providerReason || outcome.reason : undefined;
      let isNewest = true;
      await channels.write(key, name, (one) => {
        if (one?.id !== id) return undefined;
        // Of two broadcasts at a time, Apple may keep the older one: then the newest goes again.
        isNewest = one.sent === sent || one.sent === record.version;
        return { ...one, problem, sent: isNewest ? record.version : Math.min(one.sent ?? 1, record.version) };
      });
      return isNewest ? never : retry.failedMs;
    });
    return Math.min(...(await Promise.all(waits)));
  };

  return async (key: ActivityKey, version: number | undefined, signal: AbortSignal): Promise<void> => {
    const record = await channels.read(key);
    if (!record) return;
    let longestMs: number = retry.failedMs;
    // A replica of the broker may be behind.
    const isStale = version !== undefined && record.version < version;
    if (!isStale && shares.room(key.projectId) > 0) {
      shares.take(key.projectId, 1);
      try {
        longestMs = await broadcast(key, record, signal);
        if (version === undefined || record.end) await channels.clean(key, record);
      } finally {
        shares.give(key.projectId, 1);
      }
    }
    if (longestMs === never) return;
    const at = now().getTime();
    const waitMs = Math.min(longestMs, Math.max(retry.firstMs, (at - record.writtenAt) * retry.ageShare));
    await dueMessages.schedule({ ...key, purpose: "broadcast" }, new Date(at + waitMs));
  };
};
