import { z } from "zod";
import { defineRequests, list, request } from "../envelope.ts";
import { SubscriptionResult, Topic, TopicListQuery, TopicName, TopicReference } from "../http/v1/topics.ts";
import { DeviceId, ProjectId, TopicId } from "../ids.ts";

const project = { projectId: ProjectId };
const done = z.object({});

const subscription = {
  ...project,
  topic: TopicReference,
  devices: z.array(DeviceId).min(1).max(1000),
  /** A project token creates missing topics and may subscribe devices to closed ones; a device may not. */
  create: z.boolean(),
};

export const topicRequests = defineRequests("registry.topics", {
  list: list(project, Topic, TopicListQuery),
  get: request({ ...project, topic: TopicReference }, Topic),
  create: request(
    { ...project, topicId: TopicId, name: TopicName, closed: z.boolean().optional() },
    z.object({ topic: Topic, created: z.boolean() }),
  ),
  change: request({ ...project, topic: TopicReference, closed: z.boolean() }, Topic),
  delete: request({ ...project, topic: TopicReference }, done),
  subscribe: request(subscription, SubscriptionResult),
  unsubscribe: request(subscription, SubscriptionResult),
});
