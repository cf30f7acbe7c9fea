import { type Bus, handleRequest } from "@herald/bus";
import { GetStats, type ProjectId, type StatsRequest, userKey } from "@herald/contracts";
import type { RollupOf } from "../domain/aggregate.ts";
import { intervalsOf } from "../domain/intervals.ts";
import { statsView, sumHours } from "../domain/stats.ts";
import type { NoticeStore } from "../stores/notification-facts-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";

/** A notification is sent for up to 28 days and opened for another 30: earlier ones have no figures left to come. */
const longestLifeMs = 60 * 86_400_000;
/** Notifications whose hours are read at a time. */
const page = 500;

const rollupsOf = async (
  notices: NoticeStore,
  projectId: ProjectId,
  { notificationId, topic, userId }: StatsRequest,
  { from, to }: { from: Date; to: Date },
): Promise<RollupOf[]> => {
  if (notificationId !== undefined) return [`hours/${notificationId}`];
  if (topic === undefined && userId === undefined) return ["project"];
  const since = new Date(from.getTime() - longestLifeMs);
  const ids =
    userId === undefined
      ? await notices.ofTopic(projectId, topic ?? "", since, to)
      : await notices.ofUser(projectId, userKey(projectId, userId), since, to);
  return ids.map((id) => `hours/${id}` as const);
};

/** Answers questions for statistics, from rollups alone. */
export const answerStats = (bus: Bus, rollups: RollupStore, notices: NoticeStore) =>
  handleRequest(bus, GetStats, async ({ projectId, request }, { signal }) => {
    const { notificationId, platform } = request;
    const intervals = intervalsOf(new Date(request.from), new Date(request.to), request.interval, request.timeZone);
    const range = {
      from: intervals[0]?.at ?? new Date(request.from),
      to: intervals.at(-1)?.end ?? new Date(request.to),
    };
    const wanted = await rollupsOf(notices, projectId, request, range);
    const hours = sumHours(intervals, platform);
    for (let at = 0; at < wanted.length; at += page) {
      signal.throwIfAborted();
      const found = rollups.hours(projectId, wanted.slice(at, at + page), range.from, range.to);
      for (const hour of await found) hours.add(hour);
    }
    const opens = notificationId === undefined ? {} : await rollups.total(projectId, notificationId);
    return statsView(request, intervals, hours, opens);
  });
