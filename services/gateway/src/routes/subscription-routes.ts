import { SubscribeDevices, type SubscriptionResult, UnsubscribeDevices } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";
import { projectOrDevice } from "../auth/caller.ts";
import { ownDevice } from "../auth/own-device.ts";
import { noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { deviceParam, newTopicParam, topicParam } from "./path-params.ts";

const known = ({ unknown, full }: z.output<typeof SubscriptionResult>): void => {
  if (full.length > 0)
    throw new HeraldError(
      "validation-failed",
      "topic: the device already has 64 topics and values of metadata and identifiers, the maximum",
    );
  if (unknown.length > 0) throw new HeraldError("device-not-found", "id: the project has no such device");
};

const subscribe = defineRoute({
  method: "put",
  path: "/api/v1/devices/{id}/topics/{topic}",
  operationId: "subscribeDevice",
  tag: "Topics",
  summary: "Subscribe a device to a topic",
  description: "With a project token, a topic that does not exist is created; with a device credential it is a 404.",
  access: projectOrDevice("devices"),
  params: { id: deviceParam, topic: newTopicParam },
  responses: { 204: { description: "The device is subscribed" } },
  errors: ["device-not-found", "topic-not-found", "topic-exists", "topic-closed"],
  handle: async ({ sendRequest }, { caller, params }) => {
    const devices = [ownDevice(caller, params.id)];
    const create = caller.kind === "project";
    known(await sendRequest(SubscribeDevices, { projectId: caller.projectId, topic: params.topic, devices, create }));
    return noContent();
  },
});

const unsubscribe = defineRoute({
  method: "delete",
  path: "/api/v1/devices/{id}/topics/{topic}",
  operationId: "unsubscribeDevice",
  tag: "Topics",
  summary: "Unsubscribe a device from a topic",
  access: projectOrDevice("devices"),
  params: { id: deviceParam, topic: topicParam },
  responses: { 204: { description: "The device is not subscribed" } },
  errors: ["device-not-found", "topic-not-found"],
  handle: async ({ sendRequest }, { caller, params }) => {
    const devices = [ownDevice(caller, params.id)];
    known(
      await sendRequest(UnsubscribeDevices, {
        projectId: caller.projectId,
        topic: params.topic,
        devices,
        create: false,
      }),
    );
    return noContent();
  },
});

export const subscriptionRoutes = [subscribe, unsubscribe];
