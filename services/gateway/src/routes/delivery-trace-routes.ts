import {
  DeliveryTrace,
  DeviceNotification,
  ExplainDevice,
  GetDeliveryTrace,
  GetDevice,
  keysetPageOf,
  keysetQuery,
  ListDeviceNotifications,
  OpensOfDevices,
  OpensOfNotifications,
} from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { keysetRequest, pageReply } from "../http/page-reply.ts";
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

const listDeviceNotifications = defineRoute({
  method: "get",
  path: "/api/v1/devices/{id}/notifications",
  operationId: "listDeviceNotifications",
  tag: "Devices",
  summary: "List what was sent to a device, newest first",
  description:
    "The timeline of a device: every notification that had the device in its audience, with its result there. The delivery trace explains one of them, and why the device did not get another. A page looks at a limited number of the project's large notifications: it may have fewer rows than `per_page`, so continue while `next` is not null. Notifications are kept for a limited time after their end.",
  access: project("read"),
  params: { id: deviceParam },
  query: z.strictObject(keysetQuery),
  responses: { 200: { description: "A page of the timeline", schema: keysetPageOf(DeviceNotification) } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    const deviceId = request.params.id;
    const [page] = await Promise.all([
      sendRequest(ListDeviceNotifications, { projectId, deviceId, page: keysetRequest(request.query) }),
      sendRequest(GetDevice, { projectId, deviceId }),
    ]);
    const notificationIds = page.data.map(({ notification }) => notification.id);
    const { openedAt }: z.output<typeof OpensOfNotifications.answer> =
      notificationIds.length === 0
        ? { openedAt: {} }
        : await sendRequest(OpensOfNotifications, { projectId, deviceId, notificationIds });
    const data = page.data.map((row) => {
      const opened = openedAt[row.notification.id];
      return opened === undefined ? row : { ...row, opened_at: opened };
    });
    return pageReply(request, { data, next: page.next });
  },
});

export const deliveryTraceRoutes = [getDeliveryTrace, listDeviceNotifications];
