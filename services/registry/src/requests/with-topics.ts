import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { EventContext, TopicRow } from "../domain/registry-events.ts";

export const topicBeingDeleted = (name: string): HeraldError =>
  new HeraldError("topic-exists", `topic: \`${name}\` is being deleted; its name is free in a moment`, {
    retryAfterSeconds: 1,
  });

/** Creates missing topics. Those that are being deleted are not among the rows. */
export const ensureTopics = async (
  { topics, publishQueue }: Deps,
  context: EventContext,
  names: readonly string[],
): Promise<TopicRow[]> => {
  const { topics: rows, created } = await topics.ensure(context, names);
  publishQueue.topics(context.projectId, created);
  return rows;
};

/** @throws HeraldError `topic-exists` while one of them is being deleted. */
const requireTopics = async (deps: Deps, context: EventContext, names: readonly string[]): Promise<TopicRow[]> => {
  const rows = await ensureTopics(deps, context, names);
  const missing = names.find((name) => !rows.some((row) => row.name === name));
  if (missing !== undefined) throw topicBeingDeleted(missing);
  return rows;
};

/** Runs `write`, which subscribes, between two checks: a topic that was deleted meanwhile is created again. */
export const withTopics = async <Result>(
  deps: Deps,
  context: EventContext,
  names: readonly string[],
  write: (topics: readonly TopicRow[]) => Promise<Result>,
): Promise<Result> => {
  if (names.length === 0) return write([]);
  const result = await write(await requireTopics(deps, context, names));
  await requireTopics(deps, context, names);
  return result;
};
