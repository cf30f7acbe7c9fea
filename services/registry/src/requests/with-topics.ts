import { HeraldError } from "@herald/kit";
import type { Occasion, TopicRow } from "../domain/registry-events.ts";
import type { Announce } from "../stores/publish-queue.ts";
import type { TopicStore } from "../stores/topic-store.ts";

export const beingDeleted = (name: string): HeraldError =>
  new HeraldError("topic-exists", `topic: \`${name}\` is being deleted; its name is free in a moment`, {
    retryAfterSeconds: 1,
  });

/** Makes the topics that do not exist, and gives them all. Throws `topic-exists` while one of them is being deleted. */
const ensureTopics = async (
  { topics, announce }: { topics: TopicStore; announce: Announce },
  occasion: Occasion,
  names: readonly string[],
): Promise<TopicRow[]> => {
  const { topics: rows, created, deleting } = await topics.ensure(occasion, names);
  announce.topics(occasion.projectId, created);
  const [first] = deleting;
  if (first !== undefined) throw beingDeleted(first);
  return rows;
};

/**
 * Subscribes by `write`, and looks once more: a topic that was deleted meanwhile is made again where its deletion is over, so that
 * no subscription is without a topic.
 */
export const withTopics = async <Result>(
  parts: { topics: TopicStore; announce: Announce },
  occasion: Occasion,
  names: readonly string[],
  write: (topics: readonly TopicRow[]) => Promise<Result>,
): Promise<Result> => {
  if (names.length === 0) return write([]);
  const result = await write(await ensureTopics(parts, occasion, names));
  await ensureTopics(parts, occasion, names);
  return result;
};
