import {
  ChangeTopic,
  CreateTopic,
  newTopicId,
  type SubscriptionResult,
  Topic,
  TopicDevices,
  topicRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import type { z } from "zod";
import { project, projectOrDevice } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";

export const topicRoutes = [
  forwardRoute("listTopics", "get /api/v1/topics", {
    summary: "List topics",
    description: "Oldest first, unless `sort` says otherwise; by name with `prefix`.",
    access: project("read"),
    forward: topicRequests.list,
    response: "A page of topics",
  }),
  defineRoute("createTopic", "post /api/v1/topics", {
    summary: "Create a topic",
    access: project("devices"),
    body: CreateTopic,
    responses: { 201: { description: "The topic", schema: dataOf(Topic) } },
    errors: ["topic-exists"],
    handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) =>
      idempotent({
        newId: newTopicId,
        perform: async ({ id }) => {
          const { topic } = await sendRequest(topicRequests.create, { projectId, topicId: id, ...body.topic });
          if (topic.id !== id)
            throw new HeraldError("topic-exists", `topic.name: the project has this topic as ${topic.id}`);
          return created(topic);
        },
      }),
  }),
  forwardRoute("getTopic", "get /api/v1/topics/{id}", {
    summary: "Read a topic, by id or name",
    access: project("read"),
    forward: topicRequests.get,
    response: "The topic",
  }),
  forwardRoute("changeTopic", "patch /api/v1/topics/{id}", {
    summary: "Close or reopen a topic",
    description: "Only a project token can subscribe devices to a closed topic. Subscriptions stay.",
    access: project("devices"),
    body: ChangeTopic,
    forward: topicRequests.change,
    add: ({ body }) => body.topic,
    response: "The changed topic",
  }),
  forwardRoute("deleteTopic", "delete /api/v1/topics/{id}", {
    summary: "Delete a topic and its subscriptions",
    access: project("devices"),
    forward: topicRequests.delete,
    response: "The topic is deleted",
  }),
  forwardRoute("subscribeDevices", "put /api/v1/topics/{id}/devices", {
    summary: "Subscribe up to 1,000 devices",
    description: "A topic that does not exist is created.",
    access: project("devices"),
    creates: "id",
    body: TopicDevices,
    forward: topicRequests.subscribe,
    add: ({ body }) => ({ ...body, create: true }),
    response: "The changes",
    errors: ["topic-not-found", "topic-exists"],
  }),
  forwardRoute("unsubscribeDevices", "delete /api/v1/topics/{id}/devices", {
    summary: "Unsubscribe up to 1,000 devices",
    access: project("devices"),
    body: TopicDevices,
    forward: topicRequests.unsubscribe,
    add: ({ body }) => ({ ...body, create: false }),
    response: "The changes",
  }),
];

/** Refuses a change of one subscription whose device is unknown or full. */
const checkChanged = (result: z.output<typeof SubscriptionResult>): z.output<typeof SubscriptionResult> => {
  if (result.full.length > 0)
    throw new HeraldError(
      "validation-failed",
      "topic: the device already has 64 topics and values of metadata and identifiers, the maximum",
    );
  if (result.unknown.length > 0) throw notFound("device-not-found", "id");
  return result;
};

export const subscriptionRoutes = [
  forwardRoute("subscribeDevice", "put /api/v1/devices/{id}/topics/{topic}", {
    tag: "Topics",
    summary: "Subscribe a device to a topic",
    description: "With a project token, a topic that does not exist is created; with a device credential it is a 404.",
    access: projectOrDevice("devices"),
    creates: "topic",
    forward: topicRequests.subscribe,
    add: ({ caller, params }) => ({ devices: [params.id], create: caller.kind === "project" }),
    show: checkChanged,
    status: 204,
    response: "The device is subscribed",
    errors: ["topic-not-found", "topic-exists", "topic-closed"],
  }),
  forwardRoute("unsubscribeDevice", "delete /api/v1/devices/{id}/topics/{topic}", {
    tag: "Topics",
    summary: "Unsubscribe a device from a topic",
    access: projectOrDevice("devices"),
    forward: topicRequests.unsubscribe,
    add: ({ params }) => ({ devices: [params.id], create: false }),
    show: checkChanged,
    status: 204,
    response: "The device is not subscribed",
  }),
];
