import { handleRequest, type RequestListener } from "@herald/bus";
import { type DeviceId, type ProjectId, type Topic, type TopicReference, topicRequests } from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { type EventContext, eventContext, type TopicRow } from "../domain/registry-events.ts";
import { removeTopic } from "../jobs/remove-deleted.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import { isId, rowOf, type TopicDocument } from "../stores/topic-store.ts";

const topicBeingDeleted = (name: string): HeraldError =>
  new HeraldError("topic-exists", `topic: \`${name}\` is being deleted; its name is free in a moment`, {
    retryAfterSeconds: 1,
  });

export type TopicDeps = Pick<Deps, "publishSoon" | "topics">;

/** Creates missing topics. The result, by name, lacks topics that are being deleted. */
export const ensureTopics = async (
  { topics, publishSoon }: TopicDeps,
  context: EventContext,
  names: readonly string[],
) => {
  const { topics: rows, created } = await topics.ensure(context, names);
  publishSoon.topics(context.projectId, created);
  return new Map(rows.map((row) => [row.name, row]));
};

/** The topics of these names. @throws HeraldError `topic-exists` while one of them is being deleted. */
export const requireTopics = (ensured: ReadonlyMap<string, TopicRow>, names: readonly string[]): TopicRow[] =>
  names.map((name) => existing(ensured.get(name), () => topicBeingDeleted(name)));

/** Runs `write`, which subscribes, between two checks: a topic that was deleted meanwhile is created again. */
export const withTopics = async <Result>(
  deps: TopicDeps,
  context: EventContext,
  names: readonly string[],
  write: (topics: readonly TopicRow[]) => Promise<Result>,
): Promise<Result> => {
  if (names.length === 0) return write([]);
  const ensure = async () => requireTopics(await ensureTopics(deps, context, names), names);
  const result = await write(await ensure());
  await ensure();
  return result;
};

/** How long a deletion may delay the reply. The rest of a large topic is removed in the background. */
const deletionMs = 3_000;

const topicNotFound = (): HeraldError => notFound("topic-not-found", "topic");

export const handleTopicRequests = (
  deps: TopicDeps & Pick<Deps, "bus" | "devices" | "now" | "projects">,
): RequestListener[] => {
  const { bus, devices, topics, projects, publishSoon, now } = deps;
  const contextOf = (projectId: ProjectId) => eventContext(projectId, now());
  const view = async ({ _id: id, projectId, name, closed = false, createdAt }: TopicDocument): Promise<Topic> => {
    const subscribers = await devices.countSubscribers(projectId, name);
    return { id, name, devices: subscribers, closed, created_at: createdAt.toISOString() };
  };
  const find = async (projectId: ProjectId, reference: TopicReference) =>
    existing(await topics.find(projectId, reference), topicNotFound);

  return [
    handleRequest(bus, topicRequests.list, async ({ projectId, page, prefix }) => {
      const found = await topics.list(projectId, page, prefix);
      return { ...found, data: await Promise.all(found.data.map(view)) };
    }),

    handleRequest(bus, topicRequests.get, async ({ projectId, topic }) => view(await find(projectId, topic))),

    handleRequest(bus, topicRequests.create, async ({ projectId, topicId: id, name, closed }) => {
      await projects.requireExisting(projectId);
      const created = await topics.insert(contextOf(projectId), { id, name, closed });
      if (created) publishSoon.topics(projectId, [id]);
      const topic = await topics.find(projectId, name);
      if (!topic) throw topicBeingDeleted(name);
      if (topic._id !== id) throw new HeraldError("topic-exists", `topic.name: \`${name}\` exists already`);
      return { topic: await view(topic), created };
    }),

    handleRequest(bus, topicRequests.change, async ({ projectId, topic: reference, closed }) => {
      const { _id } = await find(projectId, reference);
      return view(existing(await topics.setClosed(projectId, _id, closed), topicNotFound));
    }),

    handleRequest(bus, topicRequests.delete, async ({ projectId, topic: reference }) => {
      const topic = await find(projectId, reference);
      if (!(await topics.markDeleted(contextOf(projectId), rowOf(topic)))) throw topicNotFound();
      publishSoon.topics(projectId, [topic._id]);
      await removeTopic(deps, topic, AbortSignal.timeout(deletionMs));
      return {};
    }),

    handleRequest(bus, topicRequests.subscribe, async ({ projectId, topic, devices: ids, create }) => {
      const { known, unknown } = await splitKnown(devices, projectId, ids);
      const write = async (row: TopicRow) => {
        const changed = await devices.subscribe(contextOf(projectId), known, row);
        if (changed > 0) publishSoon.devices(projectId, known);
        const full = changed < known.length ? await devices.fullFor(projectId, known, row.name) : [];
        return { topic: row, changed, unknown, full };
      };
      const found = await topics.find(projectId, topic);
      if (found?.closed && !create)
        throw new HeraldError(
          "topic-closed",
          "topic: it is closed; your backend subscribes devices with its project token",
        );
      if (found) {
        const result = await write(rowOf(found));
        // The topic was deleted meanwhile, perhaps before these subscriptions were written.
        if ((await topics.find(projectId, found._id)) === null) {
          await devices.unsubscribe(contextOf(projectId), known, rowOf(found));
          throw topicNotFound();
        }
        return result;
      }
      if (!create || isId(topic)) throw topicNotFound();
      if (known.length === 0) throw notFound("device-not-found", "devices", "the project has none of them");
      return withTopics(deps, contextOf(projectId), [topic], async ([row]) => {
        if (!row) throw topicNotFound();
        return write(row);
      });
    }),

    handleRequest(bus, topicRequests.unsubscribe, async ({ projectId, topic: reference, devices: ids }) => {
      const topic = rowOf(await find(projectId, reference));
      const { known, unknown } = await splitKnown(devices, projectId, ids);
      const changed = await devices.unsubscribe(contextOf(projectId), known, topic);
      if (changed > 0) publishSoon.devices(projectId, known);
      return { topic, changed, unknown, full: [] };
    }),
  ];
};

/** Each id once, by whether the project has the device. */
const splitKnown = async (devices: DeviceStore, projectId: ProjectId, ids: readonly DeviceId[]) => {
  const unique = [...new Set(ids)];
  const has = new Set((await devices.findRecipients(projectId, unique)).map(({ _id }) => _id));
  return { known: unique.filter((id) => has.has(id)), unknown: unique.filter((id) => !has.has(id)) };
};
