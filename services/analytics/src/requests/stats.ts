import { type Bus, handleRequest } from "@herald/bus";
import { GetStats, type ProjectId, type StatsRequest, userKey } from "@herald/contracts";
import type { RollupScope } from "../domain/aggregate.ts";
import { intervalsOf } from "../domain/intervals.ts";
import { statsView, sumHours } from "../domain/stats.ts";
import type { NotificationFactsStore } from "../stores/notification-facts-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";

/** A notification is sent for up to 28 days and opened for another 30; older ones get no new figures. */
const longestLifeMs = 60 * 86_400_000;
/** Notifications whose hours are read at a time. */
const page = 500;

const scopesOf = async (
  notificationFacts: NotificationFactsStore,
  projectId: ProjectId,
  { notificationId, topic, userId }: StatsRequest,
  { from, to }: { from: Date; to: Date },
): Promise<RollupScope[]> => {
  if (notificationId !== undefined) return [`hours/${notificationId}`];
  if (topic === undefined && userId === undefined) return ["project"];
  const since = new Date(from.getTime() - longestLifeMs);
  const ids =
    userId === undefined
      ? await notificationFacts.ofTopic(projectId, topic ?? "", since, to)
      : await notificationFacts.ofUser(projectId, userKey(projectId, userId), since, to);
  return ids.map((id) => `hours/${id}` as const);
};

/** Reads rollups only. */
export const handleStatsRequest = (bus: Bus, rollups: RollupStore, notificationFacts: NotificationFactsStore) =>
  handleRequest(bus, GetStats, async ({ projectId, request }, { signal }) => {
    const { notificationId, platform } = request;
    const intervals = intervalsOf(new Date(request.from), new Date(request.to), request.interval, request.timeZone);
    const range = {
      from: intervals[0]?.at ?? new Date(request.from),
      to: intervals.at(-1)?.end ?? new Date(request.to),
    };
    const wanted = await scopesOf(notificationFacts, projectId, request, range);
    const hours = sumHours(intervals, platform);
    for (let at = 0; at < wanted.length; at += page) {
      signal.throwIfAborted();
      const found = rollups.hours(projectId, wanted.slice(at, at + page), range.from, range.to);
      for (const hour of await found) hours.add(hour);
    }
    const opens = notificationId === undefined ? {} : await rollups.total(projectId, notificationId);
    return statsView(request, intervals, hours, opens);
  });
