import type { DeviceId, EventData, ProjectId } from "@herald/contracts";
import { indexName } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { maxFacets, topicFacet } from "../domain/facets.ts";
import type { EventContext, TopicRow } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";
import { notDeleted } from "./tombstones.ts";

/** A device with room for one more facet; that of its user does not count. */
const withRoom: Filter<DeviceDocument>[] = [
  { [`facets.${maxFacets - 1}`]: { $exists: false } },
  { userId: { $exists: true }, [`facets.${maxFacets}`]: { $exists: false } },
];

/** Devices that could not be subscribed to a topic, because they have the maximum of facets. */
export const fullFor =
  (devices: Collection<DeviceDocument>) =>
  async (projectId: ProjectId, ids: readonly DeviceId[], topic: string): Promise<DeviceId[]> => {
    const rows = await devices
      .find(
        { projectId, _id: { $in: [...ids] }, ...notDeleted, facets: { $ne: topicFacet(topic) }, $nor: withRoom },
        { hint: indexName(deviceIndexes.list), projection: { _id: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();
    return rows.map(({ _id }) => _id);
  };

/** One update for all devices, whose pipeline makes each event: a write for each would take twice as long. */
export const changeSubscriptions = async (
  devices: Collection<DeviceDocument>,
  { projectId, at, newId }: EventContext,
  ids: readonly DeviceId[],
  topic: TopicRow,
  event: "DeviceSubscribedV1" | "DeviceUnsubscribedV1",
): Promise<number> => {
  if (ids.length === 0) return 0;
  const facet = topicFacet(topic.name);
  const subscribe = event === "DeviceSubscribedV1";
  const outboxEvent = {
    id: { $concat: [{ $literal: `${newId()}/` }, "$_id"] },
    event: { $literal: event },
    subject: "$_id",
    at,
    data: {
      project_id: { $literal: projectId },
      device_id: "$_id",
      topic_id: { $literal: topic.id },
      topic: { $literal: topic.name },
      at: { $literal: at.toISOString() },
    } satisfies Record<keyof EventData<typeof event>, unknown>,
  };
  const { modifiedCount } = await devices.updateMany(
    {
      projectId,
      _id: { $in: [...ids].sort() },
      facets: subscribe ? { $ne: facet } : facet,
      ...notDeleted,
      ...(subscribe && { $or: withRoom }),
    },
    [
      {
        $set: {
          facets: subscribe
            ? { $concatArrays: ["$facets", [{ $literal: facet }]] }
            : { $filter: { input: "$facets", cond: { $ne: ["$$this", { $literal: facet }] } } },
          version: { $add: ["$version", 1] },
          updatedAt: at,
          outbox: { $concatArrays: [{ $ifNull: ["$outbox", []] }, [outboxEvent]] },
        },
      },
    ],
  );
  return modifiedCount;
};
