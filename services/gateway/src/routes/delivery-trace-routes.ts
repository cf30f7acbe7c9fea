import { DeliveryTrace, ExplainDevice, GetDeliveryTrace, OpensOfDevices } from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { deliveryTrace } from "../trace/delivery-trace.ts";
import { deviceParam, notificationParam } from "./path-params.ts";

const getDeliveryTrace = defineRoute({
  method: "get",
  path: "/api/v1/notifications/{id}/devices/{device}",
  operationId: "getDeliveryTrace",
  tag: "Notifications",
  summary: "Read the delivery trace of a notification on one device",
  description:
    "Explains one delivery, as data and in sentences: the target that matches the device or why it got nothing, each attempt with the provider's response, the next attempt, and when the notification was opened. Targets are matched against the device as it is now.",
  access: project("read"),
  params: { id: notificationParam, device: deviceParam },
  responses: { 200: { description: "The delivery trace", schema: z.object({ data: DeliveryTrace }) } },
  errors: ["notification-not-found", "notification-gone"],
  handle: async ({ sendRequest }, { caller: { projectId }, params: { id, device: deviceId } }) => {
    const trace = await sendRequest(GetDeliveryTrace, { projectId, notificationId: id, deviceId });
    const [explained, opens] = await Promise.all([
      sendRequest(ExplainDevice, { projectId, deviceId, targets: trace.notification.targets }),
      sendRequest(OpensOfDevices, { projectId, notificationId: id, deviceIds: [deviceId] }),
    ]);
    return ok({ data: deliveryTrace({ ...trace, ...explained, openedAt: opens.openedAt[deviceId] }) });
  },
});

export const deliveryTraceRoutes = [getDeliveryTrace];
