import type { DeviceId, ProjectId } from "@herald/contracts";
import { findByIds } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { maxFacets, topicFacet } from "../domain/facets.ts";
import { type EventContext, eventOfEach, type TopicRow } from "../domain/registry-events.ts";
import type { DeviceDocument } from "./device-document.ts";
import { notDeleted } from "./tombstones.ts";

/** The facets that count, as {@link countedFacets} counts them. */
const counted = {
  $filter: { input: "$facets", cond: { $not: [{ $in: [{ $substrCP: ["$$this", 0, 2] }, ["u:", "p:", "z:", "l:"]] }] } },
};

const beyondMax = `facets.${maxFacets}`;

/** Devices with room for one more facet. Counting costs more than the first filter, and few devices need it. */
const withRoom: Filter<DeviceDocument>[] = [
  { [beyondMax]: { $exists: false } },
  { [beyondMax]: { $exists: true }, $expr: { $lt: [{ $size: counted }, maxFacets] } },
];

/** Devices that could not be subscribed to a topic, because they have the maximum of facets. */
export const fullFor =
  (devices: Collection<DeviceDocument>) =>
  async (projectId: ProjectId, ids: readonly DeviceId[], topic: string): Promise<DeviceId[]> => {
    const full = { projectId, ...notDeleted, facets: { $ne: topicFacet(topic) }, $nor: withRoom };
    const rows = await findByIds(devices, ids, full, { projection: { _id: 1 } });
    return rows.map(({ _id }) => _id);
  };

/** Subscribes devices to a topic or ends their subscriptions. Resolves to how many changed, each with its event. */
export const changeSubscriptions = async (
  devices: Collection<DeviceDocument>,
  context: EventContext,
  ids: readonly DeviceId[],
  topic: TopicRow,
  event: "DeviceSubscribedV1" | "DeviceUnsubscribedV1",
): Promise<number> => {
  if (ids.length === 0) return 0;
  const facet = topicFacet(topic.name);
  const subscribe = event === "DeviceSubscribedV1";
  const facets = subscribe
    ? { $concatArrays: ["$facets", [{ $literal: facet }]] }
    : { $filter: { input: "$facets", cond: { $ne: ["$$this", { $literal: facet }] } } };
  const { modifiedCount } = await devices.updateMany(
    {
      projectId: context.projectId,
      _id: { $in: [...ids].sort() },
      facets: subscribe ? { $ne: facet } : facet,
      ...notDeleted,
      ...(subscribe && { $or: withRoom }),
    },
    [{ $set: { facets, ...eventOfEach(context, event, { topic_id: topic.id, topic: topic.name }) } }],
  );
  return modifiedCount;
};
