import { newDeviceId, type ProjectId, type Topic, topicRequests } from "@herald/contracts";
import type { z } from "zod";
import type { Devices } from "./registry-devices.ts";
import { at, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

/** Registry's topics. */
export const serveTopics = (serve: Serve, devices: Devices): void => {
  const topics = new Map<string, Owned<Topic>>();

  const topicOf = (projectId: ProjectId, reference: string): Owned<Topic> => {
    const named = [...topics.values()].find((one) => one.projectId === projectId && one.value.name === reference);
    return named ?? owned(topics, { projectId }, reference, "topic-not-found");
  };
  const makeTopic = (projectId: ProjectId, id: string, name: string, closed = false): Owned<Topic> => {
    const topic = { projectId, value: { id: id as Topic["id"], name, devices: 0, closed, created_at: at() } };
    topics.set(id, topic);
    return topic;
  };
  serve(topicRequests.list, ({ projectId, page }) => pageOf(rows(topics, projectId), page));
  serve(topicRequests.get, ({ projectId, topic }) => topicOf(projectId, topic).value);
  serve(topicRequests.create, ({ projectId, topicId, name, closed }) => {
    const known = rows(topics, projectId).find((topic) => topic.name === name);
    if (known !== undefined) return { topic: known, created: false };
    return { topic: makeTopic(projectId, topicId, name, closed).value, created: true };
  });
  serve(topicRequests.change, ({ projectId, topic, closed }) => {
    const found = topicOf(projectId, topic);
    found.value = { ...found.value, closed };
    return found.value;
  });
  serve(topicRequests.delete, ({ projectId, topic }) => {
    topics.delete(topicOf(projectId, topic).value.id);
    return {};
  });
  const subscribing = (subscribe: boolean) => (data: z.output<typeof topicRequests.subscribe.request>) => {
    const { projectId, topic: reference, create } = data;
    const exists = rows(topics, projectId).some(({ id, name }) => id === reference || name === reference);
    if (!exists && create && !reference.startsWith("top_"))
      makeTopic(projectId, newDeviceId(new Date()).replace("dev_", "top_"), reference);
    const { value: topic } = topicOf(projectId, reference);
    const known = data.devices.filter((id) => devices.get(id)?.projectId === projectId);
    for (const id of known) {
      const device = devices.get(id);
      if (device === undefined) continue;
      const names = new Set(device.value.topics);
      if (subscribe) names.add(topic.name);
      else names.delete(topic.name);
      device.value = { ...device.value, topics: [...names] };
    }
    const unknown = data.devices.filter((id) => !known.includes(id));
    return { topic: { id: topic.id, name: topic.name }, changed: known.length, unknown };
  };
  serve(topicRequests.subscribe, subscribing(true));
  serve(topicRequests.unsubscribe, subscribing(false));
};
