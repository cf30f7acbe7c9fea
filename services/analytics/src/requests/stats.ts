import { type Bus, handleRequest } from "@herald/bus";
import {
  type NotificationId,
  Platform,
  type ProjectId,
  type StatsRequest,
  statsRequests,
  userKey,
} from "@herald/contracts";
import type { RollupScope } from "../domain/aggregate.ts";
import { intervalsOf, partsOfRange, type Range, unitMs } from "../domain/intervals.ts";
import { groupsView, statsView, sumGroups, sumHours } from "../domain/stats.ts";
import { type Dimension, partsOf, valueOfField } from "../domain/tags.ts";
import type { Stores } from "../stores/create-stores.ts";
import type { ScopedHour } from "../stores/rollup-store.ts";

/** A notification is sent for up to 28 days and opened for another 30; older ones get no new figures. */
const longestLifeMs = 60 * 86_400_000;
/** Scopes whose hours one query reads. */
const page = 500;

type StatsStores = Pick<Stores, "rollups" | "notificationFacts" | "tagValues">;

const scopesOf = async (
  { notificationFacts }: StatsStores,
  projectId: ProjectId,
  { notificationId, topic, userId, tag }: StatsRequest,
  { from, to }: Range,
): Promise<RollupScope[]> => {
  if (notificationId !== undefined) return [`hours/${notificationId}`];
  if (tag !== undefined) return [tag];
  if (topic === undefined && userId === undefined) return ["project"];
  const since = new Date(from.getTime() - longestLifeMs);
  const ids =
    userId === undefined
      ? await notificationFacts.ofTopic(projectId, topic ?? "", since, to)
      : await notificationFacts.ofUser(projectId, userKey(projectId, userId), since, to);
  return ids.map((id) => `hours/${id}` as const);
};

/** Reads only rollups, and the notifications of a topic or user. */
export const handleStatsRequest = (bus: Bus, stores: StatsStores) => {
  const { rollups, notificationFacts, tagValues } = stores;

  const eachHour = async (
    projectId: ProjectId,
    scopes: readonly RollupScope[],
    { from, to, signal }: Range & { readonly signal: AbortSignal },
    visit: (hour: ScopedHour) => void,
  ): Promise<void> => {
    for (let at = 0; at < scopes.length; at += page) {
      signal.throwIfAborted();
      for (const hour of await rollups.hours(projectId, scopes.slice(at, at + page), from, to)) visit(hour);
    }
  };

  type Asked = Range & {
    readonly projectId: ProjectId;
    readonly platform: Platform | undefined;
    readonly signal: AbortSignal;
  };

  const byTopic = async ({ projectId, platform, ...range }: Asked) => {
    const groups = sumGroups(range, platform);
    const since = new Date(range.from.getTime() - longestLifeMs);
    const topics = new Map<string, readonly string[]>();
    for (const { _id, topics: own } of await notificationFacts.withTopics(projectId, since, range.to))
      topics.set(`hours/${_id satisfies NotificationId}`, own);
    await eachHour(projectId, [...topics.keys()] as RollupScope[], range, (hour) => {
      for (const topic of topics.get(hour.scope) ?? []) groups.add(topic, hour);
    });
    return groupsView(groups);
  };

  /** The values of a dimension that have figures in the hour of `at`. */
  const valuesAt = async (projectId: ProjectId, dimension: Dimension, at: Date): Promise<string[]> => {
    const from = new Date(Math.floor(at.getTime() / unitMs.hour) * unitMs.hour);
    const hour = { unit: "hour", from, to: new Date(from.getTime() + unitMs.hour) } as const;
    const fields: string[] = [];
    await rollups.eachOfValues(projectId, dimension, hour, ({ values = {} }) => {
      fields.push(...Object.keys(values));
    });
    return fields.map(valueOfField);
  };

  const byDimension = async (dimension: Dimension, { projectId, platform, signal, ...range }: Asked) => {
    const groups = sumGroups(range, platform);
    for (const { unit, ...part } of partsOfRange(range)) {
      signal.throwIfAborted();
      if (unit === "quarter") {
        const scopes = (await valuesAt(projectId, dimension, part.from)).map(
          (value) => `${dimension}/${value}` as RollupScope,
        );
        await eachHour(projectId, scopes, { ...part, signal }, (hour) => {
          groups.add(hour.scope.slice(dimension.length + 1), hour);
        });
      } else
        await rollups.eachOfValues(projectId, dimension, { ...part, unit }, ({ hour, values = {} }) => {
          // An hour or day is read as a whole, so its figures are added as its first quarter.
          for (const [field, quarter] of Object.entries(values))
            groups.add(valueOfField(field), { hour, quarters: { 0: quarter } });
        });
    }
    await eachHour(projectId, [`other/${dimension}`], { ...range, signal }, groups.other.add);
    return groupsView(groups, await tagValues.others(projectId, dimension, range.from, range.to));
  };

  /** Whether the requested tag, or the label of `by`, is beyond the limit of values. */
  const isBeyond = async (projectId: ProjectId, { tag, by }: StatsRequest, range: Range): Promise<boolean> => {
    const name = (tag ?? by)?.match(/^label[:/]([a-z0-9_]+)/)?.[1];
    const asked = [
      ...(name === undefined ? [] : [{ dimension: "label" as const, value: name }]),
      ...(tag === undefined ? [] : [partsOf(tag)]),
    ];
    for (const one of asked) if (await tagValues.isBeyond(projectId, one, range)) return true;
    return false;
  };

  return handleRequest(bus, statsRequests.get, async ({ projectId, request }, { signal }) => {
    const { notificationId, platform, by } = request;
    const [from, to] = [new Date(request.from), new Date(request.to)];
    const intervals = intervalsOf(from, to, request.interval, request.timeZone);
    const range = { from: intervals[0]?.at ?? from, to: intervals.at(-1)?.end ?? to };
    const hours = sumHours(intervals, platform);
    const platforms = sumGroups(range, platform);
    await eachHour(projectId, await scopesOf(stores, projectId, request, range), { ...range, signal }, (hour) => {
      hours.add(hour);
      if (by === "platform") for (const each of Platform.options) platforms.add(each, hour, each);
    });
    const asked = { projectId, platform, ...range, signal };
    const groups =
      by === undefined
        ? {}
        : by === "platform"
          ? groupsView(platforms)
          : by === "topic"
            ? await byTopic(asked)
            : await byDimension(by === "kind" || by === "push_type" ? by : `label/${by.slice("label:".length)}`, asked);
    const opens = notificationId === undefined ? {} : await rollups.total(projectId, notificationId);
    const beyond = await isBeyond(projectId, request, range);
    return {
      ...statsView(request, intervals, hours, opens),
      ...groups,
      ...(beyond && { limit_reached: true as const }),
    };
  });
};
