import { type ActivityKey, type ActivityRecord, activityKey, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { newestSendId, unsentChannels } from "@herald/rules";
import type { Deps } from "../deps.ts";
import type { ActivityChannels } from "./activity-channels.ts";
import type { ActivitySends } from "./activity-sends.ts";
import type { DueMessages } from "./follow-up.ts";
import type { NotificationCache } from "./notification-cache.ts";
import type { Pipeline } from "./pipeline.ts";

/** The notification of a version is stored by then, unless it waits in its project's backlog. */
const storedWithinMs = 3_000;
/** A broadcast is tried again after a quarter of the version's age: of a paused project for as long as it is worth sending. */
const retry = { firstMs: 1_000, lastMs: 30_000, ageShare: 0.25 } as const;

/** Broadcasts of one project in this process. A further one is tried again a little later. */
const maxRunning = 32;

type TendDeps = Pick<Deps, "now"> & {
  readonly activities: ActivitySends;
  readonly cache: NotificationCache;
  readonly channels: ActivityChannels;
  readonly dueMessages: DueMessages;
  readonly pipeline: Pipeline;
};

/**
 * Does what is due for an activity's channels: broadcasts its newest version, and cleans up. A broadcast obeys what stops or holds the
 * version's notification, as its pushes do. Repeatable: the timestamp of a state decides, so a second broadcast changes no card.
 */
export const createTendActivity = ({ activities, cache, channels, dueMessages, pipeline, now }: TendDeps) => {
  /** By project: a slow endpoint of one must not hold the messages of others. */
  const running = new Map<ProjectId, number>();

  const schedule = (key: ActivityKey, inMs: number): Promise<void> =>
    dueMessages.schedule({ ...key, purpose: "broadcast" }, new Date(now().getTime() + inMs));

  /** Sends one version to one channel. Resolves to whether it must be tried again. */
  const toChannel = async (
    key: ActivityKey,
    { version }: ActivityRecord,
    [name, id]: readonly [string, string],
    send: (name: string, id: string) => ReturnType<Pipeline["broadcast"]>,
  ): Promise<boolean> => {
    const result = await send(name, id);
    if (result.kind !== "done") return result.kind === "waits";
    const { problem } = result;
    await channels.write(key, name, (known) =>
      known?.id === id && (known.sent ?? 0) < version ? { ...known, problem, sent: version } : undefined,
    );
    return false;
  };

  const broadcast = async (key: ActivityKey, record: ActivityRecord, signal: AbortSignal): Promise<void> => {
    const due = unsentChannels(record);
    if (due.length === 0) return;
    const ageMs = now().getTime() - record.writtenAt;
    const cached = await cache.get(key.projectId, newestSendId(key, record));
    if (!cached && ageMs < storedWithinMs)
      throw new HeraldError("service-unavailable", `the notification of ${activityKey(key)} is not stored yet`);
    const content = cached && (await activities.current(cached.document));
    // A newer version has a message of its own.
    if (cached && !content) return;
    const send = (name: string, id: string) => {
      const [app, environment] = name.split("/") as [string, "production" | "sandbox"];
      return cached && content
        ? pipeline.broadcast(cached, { id, app, environment }, content, signal)
        : Promise.resolve({ kind: "waits" } as const);
    };
    const waits = await Promise.all(due.map((channel) => toChannel(key, record, channel, send)));
    if (!waits.includes(true)) return;
    await schedule(key, Math.min(retry.lastMs, Math.max(retry.firstMs, ageMs * retry.ageShare)));
  };

  return async (key: ActivityKey, signal: AbortSignal): Promise<void> => {
    const record = await channels.read(key);
    if (!record?.channels) return;
    const { projectId } = key;
    const before = running.get(projectId) ?? 0;
    if (before >= maxRunning) return schedule(key, retry.firstMs);
    running.set(projectId, before + 1);
    try {
      await broadcast(key, record, signal);
      await channels.clean(key, record);
    } finally {
      const left = (running.get(projectId) ?? 0) - 1;
      if (left > 0) running.set(projectId, left);
      else running.delete(projectId);
    }
  };
};
