import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { SubscriptionResult, Topic, TopicListQuery, TopicName, TopicReference } from "../http/v1/topics.ts";
import { DeviceId, ProjectId, TopicId } from "../ids.ts";

const project = { projectId: ProjectId };
const done = z.object({});

export const ListTopics = defineList("registry.topics.list", project, Topic, TopicListQuery);
export const GetTopic = defineRequest("registry.topics.get", { ...project, topic: TopicReference }, Topic);
export const CreateTopicRequest = defineRequest(
  "registry.topics.create",
  { ...project, topicId: TopicId, name: TopicName, closed: z.boolean().optional() },
  z.object({ topic: Topic, created: z.boolean() }),
);
export const ChangeTopicRequest = defineRequest(
  "registry.topics.change",
  { ...project, topic: TopicReference, closed: z.boolean() },
  Topic,
);
export const DeleteTopic = defineRequest("registry.topics.delete", { ...project, topic: TopicReference }, done);

const subscription = {
  ...project,
  topic: TopicReference,
  devices: z.array(DeviceId).min(1).max(1000),
  /** A project token creates missing topics and may subscribe devices to closed ones; a device may not. */
  create: z.boolean(),
};
export const SubscribeDevices = defineRequest("registry.topics.subscribe", subscription, SubscriptionResult);
export const UnsubscribeDevices = defineRequest("registry.topics.unsubscribe", subscription, SubscriptionResult);
