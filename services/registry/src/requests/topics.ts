import { randomUUID } from "node:crypto";
import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeTopicRequest,
  CreateTopicRequest,
  type DataOf,
  DeleteTopic,
  type DeviceId,
  GetTopic,
  ListTopics,
  type ProjectId,
  SubscribeDevices,
  type TopicReference,
  UnsubscribeDevices,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { TopicRow } from "../domain/registry-events.ts";
import { type EndTopicParts, endTopic } from "../jobs/remove-topic.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { ProjectStore } from "../stores/project-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import { rowOf, type TopicDocument, type TopicStore } from "../stores/topic-store.ts";
import { topicView } from "./views.ts";
import { beingDeleted, withTopics } from "./with-topics.ts";

type Parts = EndTopicParts & {
  readonly devices: DeviceStore;
  readonly topics: TopicStore;
  readonly projects: ProjectStore;
  readonly announce: Announce;
  readonly now: () => Date;
};

/** How long a deletion is waited for; a larger topic's subscriptions end in the background. */
const deletionMs = 3_000;

const noTopic = (): HeraldError => new HeraldError("topic-not-found", "topic: the project has none of this id or name");

const isId = (reference: TopicReference): boolean => reference.startsWith("top_");

export const answerTopics = (bus: Bus, parts: Parts): RequestListener[] => {
  const { devices, topics, projects, announce, now } = parts;
  const occasion = (projectId: ProjectId) => ({ projectId, at: now(), newId: randomUUID });
  const view = async (topic: TopicDocument) =>
    topicView(topic, await devices.countSubscribers(topic.projectId, topic.name));
  const find = async (projectId: ProjectId, reference: TopicReference): Promise<TopicDocument> => {
    const topic = await topics.find(projectId, reference);
    if (!topic) throw noTopic();
    return topic;
  };

  const create = async ({
    projectId,
    topicId: id,
    name,
    closed,
  }: DataOf<{ schema: typeof CreateTopicRequest.request }>) => {
    if (!(await projects.exists(projectId)))
      throw new HeraldError("project-not-found", "project: there is none of this id");
    const created = await topics.insert(occasion(projectId), { id, name, closed });
    if (created) announce.topics(projectId, [id]);
    const topic = await topics.find(projectId, name);
    if (!topic) throw beingDeleted(name);
    if (topic._id !== id) throw new HeraldError("topic-exists", `topic.name: \`${name}\` exists already`);
    return { topic: await view(topic), created };
  };

  const subscribe = async ({ projectId, topic, devices: ids, create }: Subscription) => {
    const { known, unknown } = await sortOut(devices, projectId, ids);
    const write = async (row: TopicRow) => {
      const changed = await devices.subscribe(occasion(projectId), known, row);
      if (changed > 0) announce.devices(projectId, known);
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
      // Deleted meanwhile: its subscriptions were ended before these were made.
      if ((await topics.find(projectId, found._id)) === undefined) {
        await devices.unsubscribe(occasion(projectId), known, rowOf(found));
        throw noTopic();
      }
      return result;
    }
    if (!create || isId(topic)) throw noTopic();
    if (known.length === 0) throw new HeraldError("device-not-found", "devices: the project has none of them");
    return withTopics(parts, occasion(projectId), [topic], async ([row]) => {
      if (!row) throw noTopic();
      return write(row);
    });
  };

  return [
    handleRequest(bus, ListTopics, async ({ projectId, page }) => {
      const { data, ...rest } = await topics.list(projectId, page);
      const rows = await Promise.all(data.map(view));
      return { data: rows, ...rest } as { data: typeof rows; next: string | null };
    }),

    handleRequest(bus, GetTopic, async ({ projectId, topic }) => view(await find(projectId, topic))),

    handleRequest(bus, CreateTopicRequest, create),

    handleRequest(bus, ChangeTopicRequest, async ({ projectId, topic: reference, closed }) => {
      const { _id } = await find(projectId, reference);
      const topic = await topics.setClosed(projectId, _id, closed);
      if (!topic) throw noTopic();
      return view(topic);
    }),

    handleRequest(bus, DeleteTopic, async ({ projectId, topic: reference }) => {
      const topic = await find(projectId, reference);
      if (!(await topics.markDeleted(occasion(projectId), rowOf(topic)))) throw noTopic();
      announce.topics(projectId, [topic._id]);
      await endTopic(parts, topic, AbortSignal.timeout(deletionMs));
      return {};
    }),

    handleRequest(bus, SubscribeDevices, subscribe),

    handleRequest(bus, UnsubscribeDevices, async ({ projectId, topic: reference, devices: ids }) => {
      const topic = rowOf(await find(projectId, reference));
      const { known, unknown } = await sortOut(devices, projectId, ids);
      const changed = await devices.unsubscribe(occasion(projectId), known, topic);
      if (changed > 0) announce.devices(projectId, known);
      return { topic, changed, unknown, full: [] };
    }),
  ];
};

type Subscription = DataOf<{ schema: typeof SubscribeDevices.request }>;

/** Each id once: those that the project has, and those that it does not. */
const sortOut = async (devices: DeviceStore, projectId: ProjectId, ids: readonly DeviceId[]) => {
  const once = [...new Set(ids)];
  const has = await devices.known(projectId, once);
  return { known: once.filter((id) => has.has(id)), unknown: once.filter((id) => !has.has(id)) };
};
