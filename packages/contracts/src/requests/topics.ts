import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
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
  list: listRequest(project, Topic, TopicListQuery),
  get: oneRequest({ ...project, topic: TopicReference }, Topic),
  create: oneRequest(
    { ...project, topicId: TopicId, name: TopicName, closed: z.boolean().optional() },
    z.object({ topic: Topic, created: z.boolean() }),
  ),
  change: oneRequest({ ...project, topic: TopicReference, closed: z.boolean() }, Topic),
  delete: oneRequest({ ...project, topic: TopicReference }, done),
  subscribe: oneRequest(subscription, SubscriptionResult),
  unsubscribe: oneRequest(subscription, SubscriptionResult),
});
