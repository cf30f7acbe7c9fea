import {
  ChangeTopic,
  ChangeTopicRequest,
  CreateTopic,
  CreateTopicRequest,
  DeleteTopic,
  GetTopic,
  ListTopics,
  listQuery,
  newTopicId,
  pageOf,
  SubscribeDevices,
  SubscriptionResult,
  Topic,
  TopicDevices,
  type TopicId,
  UnsubscribeDevices,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { newTopicParam, topicParam } from "./path-params.ts";

const OneTopic = z.object({ data: Topic });

const listTopics = defineRoute({
  method: "get",
  path: "/api/v1/topics",
  operationId: "listTopics",
  tag: "Topics",
  summary: "List topics",
  description: "Oldest first, unless `sort` says otherwise.",
  access: project("read"),
  query: z.strictObject(listQuery),
  responses: { 200: { description: "A page of topics", schema: pageOf(Topic) } },
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    return pageReply(request, await sendRequest(ListTopics, { projectId, page: pageRequest(request.query) }));
  },
});

const createTopic = defineRoute({
  method: "post",
  path: "/api/v1/topics",
  operationId: "createTopic",
  tag: "Topics",
  summary: "Create a topic",
  access: project("devices"),
  body: CreateTopic,
  responses: { 201: { description: "The topic", schema: OneTopic } },
  errors: ["topic-exists"],
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) =>
    idempotent({
      newId: newTopicId,
      perform: async ({ id }) => {
        const { name, closed } = body.topic;
        const { topic } = await sendRequest(CreateTopicRequest, {
          projectId,
          topicId: id as TopicId,
          name,
          ...(closed === undefined ? {} : { closed }),
        });
        if (topic.id !== id)
          throw new HeraldError("topic-exists", `topic.name: the project has this topic as ${topic.id}`);
        return created({ data: topic });
      },
    }),
});

const getTopic = defineRoute({
  method: "get",
  path: "/api/v1/topics/{id}",
  operationId: "getTopic",
  tag: "Topics",
  summary: "Read a topic, by id or name",
  access: project("read"),
  params: { id: topicParam },
  responses: { 200: { description: "The topic", schema: OneTopic } },
  errors: ["topic-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    ok({ data: await sendRequest(GetTopic, { projectId, topic: params.id }) }),
});

const changeTopic = defineRoute({
  method: "patch",
  path: "/api/v1/topics/{id}",
  operationId: "changeTopic",
  tag: "Topics",
  summary: "Close or reopen a topic",
  description: "Only a project token can subscribe devices to a closed topic. Subscriptions stay.",
  access: project("devices"),
  params: { id: topicParam },
  body: ChangeTopic,
  responses: { 200: { description: "The changed topic", schema: OneTopic } },
  errors: ["topic-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok({ data: await sendRequest(ChangeTopicRequest, { projectId, topic: params.id, closed: body.topic.closed }) }),
});

const deleteTopic = defineRoute({
  method: "delete",
  path: "/api/v1/topics/{id}",
  operationId: "deleteTopic",
  tag: "Topics",
  summary: "Delete a topic and its subscriptions",
  access: project("devices"),
  params: { id: topicParam },
  responses: { 204: { description: "The topic is deleted" } },
  errors: ["topic-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params }) => {
    await sendRequest(DeleteTopic, { projectId, topic: params.id });
    return noContent();
  },
});

const subscribeDevices = defineRoute({
  method: "put",
  path: "/api/v1/topics/{id}/devices",
  operationId: "subscribeDevices",
  tag: "Topics",
  summary: "Subscribe up to 1,000 devices",
  description: "A topic that does not exist is created.",
  access: project("devices"),
  params: { id: newTopicParam },
  body: TopicDevices,
  responses: { 200: { description: "The changes", schema: z.object({ data: SubscriptionResult }) } },
  errors: ["topic-not-found", "topic-exists"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok({
      data: await sendRequest(SubscribeDevices, { projectId, topic: params.id, devices: body.devices, create: true }),
    }),
});

const unsubscribeDevices = defineRoute({
  method: "delete",
  path: "/api/v1/topics/{id}/devices",
  operationId: "unsubscribeDevices",
  tag: "Topics",
  summary: "Unsubscribe up to 1,000 devices",
  access: project("devices"),
  params: { id: topicParam },
  body: TopicDevices,
  responses: { 200: { description: "The changes", schema: z.object({ data: SubscriptionResult }) } },
  errors: ["topic-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) =>
    ok({
      data: await sendRequest(UnsubscribeDevices, {
        projectId,
        topic: params.id,
        devices: body.devices,
        create: false,
      }),
    }),
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
