import type { DeviceId, EventData, ProjectId } from "@herald/contracts";
import { indexName } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { maxFacets, topicFacet } from "../domain/facets.ts";
import type { Occasion, TopicRow } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes, living } from "./device-document.ts";

/** A device with room for one more facet, as alternatives: that of its user does not count. */
const roomy: Filter<DeviceDocument>[] = [
  { [`facets.${maxFacets - 1}`]: { $exists: false } },
  { userId: { $exists: true }, [`facets.${maxFacets}`]: { $exists: false } },
];

/** Those of the devices that are not subscribed to a topic, because they have no room for another facet. */
export const fullFor =
  (devices: Collection<DeviceDocument>) =>
  async (projectId: ProjectId, ids: readonly DeviceId[], topic: string): Promise<DeviceId[]> => {
    const rows = await devices
      .find(
        { projectId, _id: { $in: [...ids] }, ...living, facets: { $ne: topicFacet(topic) }, $nor: roomy },
        { hint: indexName(deviceIndexes.list), projection: { _id: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();
    return rows.map(({ _id }) => _id);
  };

/** One update for all, whose pipeline makes each device's event from the device: a write for each would take twice as long. */
export const changeSubscriptions = async (
  devices: Collection<DeviceDocument>,
  { projectId, at, newId }: Occasion,
  ids: readonly DeviceId[],
  topic: TopicRow,
  event: "DeviceSubscribedV1" | "DeviceUnsubscribedV1",
): Promise<number> => {
  if (ids.length === 0) return 0;
  const facet = topicFacet(topic.name);
  const subscribe = event === "DeviceSubscribedV1";
  const fact = {
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
      ...living,
      ...(subscribe && { $or: roomy }),
    },
    [
      {
        $set: {
          facets: subscribe
            ? { $concatArrays: ["$facets", [{ $literal: facet }]] }
            : { $filter: { input: "$facets", cond: { $ne: ["$$this", { $literal: facet }] } } },
          version: { $add: ["$version", 1] },
          updatedAt: at,
          outbox: { $concatArrays: [{ $ifNull: ["$outbox", []] }, [fact]] },
        },
      },
    ],
  );
  return modifiedCount;
};
