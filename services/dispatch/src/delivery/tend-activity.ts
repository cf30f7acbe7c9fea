import type { ActivityKey, DeviceId } from "@herald/contracts";
import { createShares, HeraldError } from "@herald/kit";
import { newestSendId, unsentChannels } from "@herald/rules";
import type { Deps } from "../deps.ts";
import type { ActivityChannels } from "./activity-channels.ts";
import type { ActivitySends } from "./activity-sends.ts";
import type { DueMessages } from "./follow-up.ts";
import type { NotificationCache } from "./notification-cache.ts";
import type { Pipeline } from "./pipeline.ts";

/** The notification of a version is stored by then, unless it waits in its project's backlog. */
const storedWithinMs = 3_000;
/** A version that must wait is tried again after a quarter of its age. */
const retry = { firstMs: 1_000, lastMs: 30_000, ageShare: 0.25 } as const;
/** Activities of all projects, and of one, that a process broadcasts at a time: a slow endpoint of one must not hold up others. */
const atATime = { total: 256, perKey: 32 } as const;

type TendDeps = Pick<Deps, "now"> & {
  readonly activities: ActivitySends;
  readonly cache: NotificationCache;
  readonly channels: ActivityChannels;
  readonly dueMessages: DueMessages;
  readonly pipeline: Pipeline;
};

/**
 * Does what is due for an activity's channels: cleans up, and broadcasts the newest version, which obeys what stops or holds its notification.
 * Repeatable: by the timestamp of its state, a second broadcast changes no card.
 */
export const createTendActivity = ({ activities, cache, channels, dueMessages, pipeline, now }: TendDeps) => {
  const shares = createShares(atATime.total, atATime.perKey);

  /** Resolves to whether something must be tried again. */
  const broadcast = async (key: ActivityKey, signal: AbortSignal): Promise<boolean> => {
    const record = await channels.read(key);
    const due = record ? unsentChannels(record) : [];
    if (!record || due.length === 0) return false;
    const cached = await cache.get(key.projectId, newestSendId(key, record));
    if (!cached && now().getTime() - record.writtenAt < storedWithinMs)
      throw new HeraldError("service-unavailable", "the notification of the version is not stored yet");
    if (!cached) return true;
    const content = await activities.current(cached.document);
    // A newer version has a message of its own.
    if (!content) return false;
    const waits = await Promise.all(
      due.map(async ([name, id]) => {
        const [app = "", environment] = name.split("/") as [string, "production" | "sandbox"];
        const channel = { id: id as DeviceId, token: id, tokenAt: 0, app, environment, broadcast: true as const };
        const { outcomes, stop } = await pipeline.broadcast(cached, channel, content, signal);
        const [outcome] = outcomes;
        if (outcome?.kind !== "accepted" && outcome?.kind !== "rejected")
          return stop === undefined || stop.kind === "paused" || stop.kind === "held";
        const problem = outcome.kind === "rejected" ? outcome.providerReason || outcome.reason : undefined;
        await channels.write(key, name, (one) =>
          one?.id === id && (one.sent ?? 0) < record.version ? { ...one, problem, sent: record.version } : undefined,
        );
        return false;
      }),
    );
    return waits.includes(true);
  };

  return async (key: ActivityKey, signal: AbortSignal): Promise<void> => {
    const record = await channels.read(key);
    if (!record?.channels) return;
    const isFree = shares.room(key.projectId) > 0;
    if (isFree) shares.take(key.projectId, 1);
    try {
      if (isFree) await channels.clean(key, record);
      if (isFree && !(await broadcast(key, signal))) return;
    } finally {
      if (isFree) shares.give(key.projectId, 1);
    }
    const at = now().getTime();
    const waitMs = Math.min(retry.lastMs, Math.max(retry.firstMs, (at - record.writtenAt) * retry.ageShare));
    await dueMessages.schedule({ ...key, purpose: "broadcast" }, new Date(at + waitMs));
  };
};
