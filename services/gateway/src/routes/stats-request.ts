import { maxStatsIntervals, type StatsQuery, type StatsRequest, statsIntervalMs } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { kindTag, labelFilterTag, pushTypeTag } from "@herald/rules";

const dayMs = 86_400_000;

/** Converts the query to a request. Throws validation-failed with all its problems. */
export const toStatsRequest = (query: StatsQuery, now: Date): StatsRequest => {
  const {
    interval = "hour",
    time_zone: timeZone = "UTC",
    topic,
    kind,
    label,
    push_type: pushType,
    platform,
    by,
  } = query;
  const to = query.to === undefined ? now : new Date(query.to);
  const from = query.from === undefined ? new Date(to.getTime() - dayMs) : new Date(query.from);
  const problems: string[] = [];
  if (from >= to) problems.push("from: must be before `to`");
  if (to.getTime() - from.getTime() > maxStatsIntervals * statsIntervalMs[interval])
    problems.push(`from: at most ${maxStatsIntervals} intervals may lie between \`from\` and \`to\``);
  const chosen = (["notification", "topic", "user", "kind", "label", "push_type"] as const).filter(
    (name) => query[name] !== undefined,
  );
  for (const name of chosen.slice(1)) problems.push(`${name}: cannot be combined with ${chosen[0]}`);
  if (by === "platform" && platform !== undefined) problems.push("by: cannot be platform where platform is given");
  if (by !== undefined && by !== "platform" && chosen.length > 0)
    problems.push(`by: ${by} cannot be combined with ${chosen.join(" or ")}; platform can`);
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  const tags = [
    ...(label === undefined ? [] : [labelFilterTag(label)]),
    ...(kind === undefined ? [] : [kindTag(kind)]),
    ...(pushType === undefined ? [] : [pushTypeTag(pushType)]),
  ];
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    interval,
    timeZone,
    notificationId: query.notification,
    topic,
    userId: query.user,
    tag: tags[0],
    platform,
    by,
  };
};
