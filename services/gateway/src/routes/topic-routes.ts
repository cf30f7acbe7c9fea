import {
  ChangeTopic,
  ChangeTopicRequest,
  CreateTopic,
  CreateTopicRequest,
  DeleteTopic,
  GetTopic,
  ListTopics,
  newTopicId,
  pageOf,
  SubscribeDevices,
  SubscriptionResult,
  Topic,
  TopicDevices,
  TopicListQuery,
  UnsubscribeDevices,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import type { z } from "zod";
import { ownDevice, project, projectOrDevice } from "../auth/caller.ts";
import { created, noContent, ok, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { deviceParam, newTopicParam, topicParam } from "./path-params.ts";

const OneTopic = dataOf(Topic);

const listTopics = defineRoute("listTopics", "get /api/v1/topics", {
  summary: "List topics",
  description: "Oldest first, unless `sort` says otherwise; by name with `prefix`.",
  access: project("read"),
  query: TopicListQuery,
  responses: { 200: { description: "A page of topics", schema: pageOf(Topic) } },
  handle: async ({ sendRequest }, { caller: { projectId }, query }) =>
    pageReply(await sendRequest(ListTopics, { projectId, prefix: query.prefix, page: pageRequest(query) })),
});

const createTopic = defineRoute("createTopic", "post /api/v1/topics", {
  summary: "Create a topic",
  access: project("devices"),
  body: CreateTopic,
  responses: { 201: { description: "The topic", schema: OneTopic } },
  errors: ["topic-exists"],
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) =>
    idempotent({
      newId: newTopicId,
      perform: async ({ id }) => {
        const { topic } = await sendRequest(CreateTopicRequest, { projectId, topicId: id, ...body.topic });
        if (topic.id !== id)
          throw new HeraldError("topic-exists", `topic.name: the project has this topic as ${topic.id}`);
        return created(topic);
      },
    }),
});

const getTopic = defineRoute("getTopic", "get /api/v1/topics/{id}", {
  summary: "Read a topic, by id or name",
  access: project("read"),
  params: { id: topicParam },
  responses: { 200: { description: "The topic", schema: OneTopic } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    ok(await sendRequest(GetTopic, { projectId, topic: params.id })),
});

const changeTopic = defineRoute("changeTopic", "patch /api/v1/topics/{id}", {
  summary: "Close or reopen a topic",
  description: "Only a project token can subscribe devices to a closed topic. Subscriptions stay.",
  access: project("devices"),
  params: { id: topicParam },
  body: ChangeTopic,
  responses: { 200: { description: "The changed topic", schema: OneTopic } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok(await sendRequest(ChangeTopicRequest, { projectId, topic: params.id, closed: body.topic.closed })),
});

const deleteTopic = defineRoute("deleteTopic", "delete /api/v1/topics/{id}", {
  summary: "Delete a topic and its subscriptions",
  access: project("devices"),
  params: { id: topicParam },
  responses: { 204: { description: "The topic is deleted" } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    sendRequest(DeleteTopic, { projectId, topic: params.id }).then(noContent),
});

const subscribeDevices = defineRoute("subscribeDevices", "put /api/v1/topics/{id}/devices", {
  summary: "Subscribe up to 1,000 devices",
  description: "A topic that does not exist is created.",
  access: project("devices"),
  params: { id: newTopicParam },
  body: TopicDevices,
  responses: { 200: { description: "The changes", schema: dataOf(SubscriptionResult) } },
  errors: ["topic-not-found", "topic-exists"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok(await sendRequest(SubscribeDevices, { projectId, topic: params.id, devices: body.devices, create: true })),
});

const unsubscribeDevices = defineRoute("unsubscribeDevices", "delete /api/v1/topics/{id}/devices", {
  summary: "Unsubscribe up to 1,000 devices",
  access: project("devices"),
  params: { id: topicParam },
  body: TopicDevices,
  responses: { 200: { description: "The changes", schema: dataOf(SubscriptionResult) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok(await sendRequest(UnsubscribeDevices, { projectId, topic: params.id, devices: body.devices, create: false })),
});

export const topicRoutes = [
  listTopics,
  createTopic,
  getTopic,
  changeTopic,
  deleteTopic,
  subscribeDevices,
  unsubscribeDevices,
];

/** The 204 of a change of one subscription. Throws when the device is unknown or full. */
const changed = ({ unknown, full }: z.output<typeof SubscriptionResult>) => {
  if (full.length > 0)
    throw new HeraldError(
      "validation-failed",
      "topic: the device already has 64 topics and values of metadata and identifiers, the maximum",
    );
  if (unknown.length > 0) throw notFound("device-not-found", "id");
  return noContent();
};

const subscribe = defineRoute("subscribeDevice", "put /api/v1/devices/{id}/topics/{topic}", {
  tag: "Topics",
  summary: "Subscribe a device to a topic",
  description: "With a project token, a topic that does not exist is created; with a device credential it is a 404.",
  access: projectOrDevice("devices"),
  params: { id: deviceParam, topic: newTopicParam },
  responses: { 204: { description: "The device is subscribed" } },
  errors: ["topic-not-found", "topic-exists", "topic-closed"],
  handle: async ({ sendRequest }, { caller, params }) => {
    const devices = [ownDevice(caller, params.id)];
    const create = caller.kind === "project";
    const { projectId } = caller;
    return sendRequest(SubscribeDevices, { projectId, topic: params.topic, devices, create }).then(changed);
  },
});

const unsubscribe = defineRoute("unsubscribeDevice", "delete /api/v1/devices/{id}/topics/{topic}", {
  tag: "Topics",
  summary: "Unsubscribe a device from a topic",
  access: projectOrDevice("devices"),
  params: { id: deviceParam, topic: topicParam },
  responses: { 204: { description: "The device is not subscribed" } },
  handle: async ({ sendRequest }, { caller, params }) => {
    const devices = [ownDevice(caller, params.id)];
    const { projectId } = caller;
    return sendRequest(UnsubscribeDevices, { projectId, topic: params.topic, devices, create: false }).then(changed);
  },
});

export const subscriptionRoutes = [subscribe, unsubscribe];
