import type { DeviceStore } from "../stores/device-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import type { TopicDocument, TopicStore } from "../stores/topic-store.ts";

export type EndTopicParts = {
  readonly devices: DeviceStore;
  readonly topics: TopicStore;
  readonly announce: Announce;
  readonly now: () => Date;
};

/** A write of so many takes about 150 ms, and holds up nobody for long. */
const atATime = 1_000;

/**
 * Ends the subscriptions to a topic that is marked as deleted, then frees its name. Repeatable at any point, by several at once.
 * Resolves to false when the signal ended it early.
 */
export const endTopic = async (
  { devices, topics, announce, now }: EndTopicParts,
  { projectId, _id, name, sweptAt }: TopicDocument,
  signal: AbortSignal,
): Promise<boolean> => {
  if (sweptAt === undefined)
    for (let ended = atATime; ended > 0; ) {
      if (signal.aborted) return false;
      ended = await devices.unsubscribeSome(projectId, name, atATime);
    }
  await topics.bury(projectId, _id, now());
  announce.topics(projectId, [_id]);
  return true;
};
