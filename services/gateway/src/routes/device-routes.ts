import {
  audienceOfContent,
  audienceRequests,
  ChangeDevice,
  DeliveryTrace,
  Device,
  DeviceNotification,
  deliveryRequests,
  deviceRequests,
  Ignored,
  keysetPageOf,
  openRequests,
  pageOf,
  RegisterDevice,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";
import { type CallerOf, project, projectOrDevice } from "../auth/caller.ts";
import { readSubscription } from "../auth/directories.ts";
import { withoutProtected } from "../auth/protected-metadata.ts";
import { deviceFor, targetFor } from "../auth/shown-to.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, keysetRequest, ok, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { channelsFor } from "../views/activity-channels.ts";
import { deliveryTrace } from "../views/delivery-trace.ts";
import { reportedOf, withReported } from "../views/reported.ts";
import { identifiersOfApp, identifiersOfBackend, leftOut } from "./identifiers.ts";

const Registered = dataOf(Device).extend({
  credential: shownOnce("The device's credential; absent when a response is replayed"),
});

/** Of a Web Push subscription in a body. */
const names = { token: "device.token", keys: "device.keys" } as const;

/** A project token may name the user. A device must prove its user. */
const checkSpeaker = (
  caller: CallerOf<"project" | "device">,
  { user_id, user_token }: z.output<typeof ChangeDevice>["device"],
): void => {
  if (caller.kind === "project") {
    if (user_token === undefined) return;
    throw new HeraldError(
      "validation-failed",
      "device.user_token: is not accepted with a project token; send `user_id` instead",
    );
  }
  if (user_id !== undefined)
    throw new HeraldError(
      "forbidden",
      "device.user_id: needs a project token; a device sends a `user_token`, and logs out with DELETE /api/v1/devices/{id}/user",
    );
};

export const deviceRoutes = [
  defineRoute("listDevices", "get /api/v1/devices", {
    summary: "List devices",
    description:
      "Oldest first, unless `sort` says otherwise. Filters combine: a device must fit all of them. `match` takes a target and lists the devices that a send to it reaches.",
    access: project("read"),
    query: deviceRequests.list.query,
    responses: { 200: { description: "A page of devices", schema: pageOf(Device) } },
    handle: async ({ sendRequest }, { caller, query }) => {
      const { projectId } = caller;
      const { status, platform, user_id, token, app, match } = query;
      const page = pageRequest(match === undefined ? query : { ...query, after: query.after ?? "" });
      const filter = { status, platform, user_id, token, app, match };
      const found = await sendRequest(deviceRequests.list, { projectId, ...filter, page });
      return pageReply({ ...found, data: found.data.map(deviceFor(caller)) });
    },
  }),
  defineRoute("registerDevice", "post /api/v1/devices", {
    summary: "Register a device, or register a known one again",
    description: "A known device keeps its id: metadata is merged, topics are added, the credential is rotated.",
    access: project("devices"),
    body: RegisterDevice,
    responses: {
      200: { description: "The device was known", schema: Registered },
      201: { description: "The device is new", schema: Registered },
    },
    errors: ["topic-exists", "device-quota-exceeded"],
    handle: async ({ sendRequest, projects }, { caller: { projectId }, body, idempotent }) => {
      const { token_kind, topics = [], keys, user_id: userId, installation_id, ...device } = body.device;
      const identifiers = identifiersOfBackend(device.identifiers);
      const perform = async () => {
        const registered = await sendRequest(deviceRequests.register, {
          projectId,
          ...device,
          identifiers,
          ...(await readSubscription(
            projects,
            projectId,
            { ...device, provider: servingProvider(device), keys },
            names,
          )),
          topics,
          userId,
          tokenKind: token_kind,
          installationId: installation_id,
        });
        const { device: data, credential } = registered;
        return registered.created ? created(data, { credential }) : ok(data, { credential });
      };
      // Registry finds the device by its push token, so a repeat needs no id to be harmless.
      return idempotent({ perform });
    },
  }),
  forwardRoute("getDevice", "get /api/v1/devices/{id}", {
    summary: "Read a device",
    access: projectOrDevice("read"),
    forward: deviceRequests.get,
    show: (device, { caller }) => deviceFor(caller)(device),
    response: "The device",
  }),
  defineRoute("changeDevice", "patch /api/v1/devices/{id}", {
    summary: "Change a device",
    description:
      "`metadata` and `identifiers` are JSON Merge Patches (RFC 7396): `null` removes a key, other keys stay. A time zone or locale that is not valid is refused from a project token, and left out and listed in `ignored` from a device, and so are protected values (`protected_metadata`). A new Web Push subscription needs its `keys` beside its `token`.",
    access: projectOrDevice("devices"),
    body: ChangeDevice,
    responses: {
      200: { description: "The changed device", schema: dataOf(Device).extend({ ignored: Ignored.optional() }) },
    },
    errors: ["token-in-use", "user-token-invalid", "user-token-used"],
    handle: async ({ sendRequest, projects }, { caller, params, body }) => {
      const { projectId } = caller;
      const deviceId = params.id;
      checkSpeaker(caller, body.device);
      const { keys: given, ...sent } = body.device;
      const byApp = caller.kind === "device";
      const paths = byApp ? (await projects.settings(projectId)).protectedMetadata : [];
      const { ignored: isProtected, ...data } = withoutProtected(sent, paths);
      const read = byApp
        ? identifiersOfApp(data.identifiers)
        : { identifiers: identifiersOfBackend(data.identifiers), ignored: [] };
      const subscription = { token: sent.token, keys: given };
      const { keys, ...subscribedWith } = await readSubscription(projects, projectId, subscription, names);
      const change = { ...sent, ...data, identifiers: read.identifiers, ...(keys && { keys }) };
      const device = await sendRequest(deviceRequests.change, {
        projectId,
        deviceId,
        change,
        ...subscribedWith,
        byApp,
      });
      return ok(device, leftOut([...isProtected, ...read.ignored]));
    },
  }),
  forwardRoute("deleteDevice", "delete /api/v1/devices/{id}", {
    summary: "Delete a device",
    access: projectOrDevice("devices"),
    forward: deviceRequests.delete,
    response: "The device is deleted",
  }),
];

export const deliveryTraceRoutes = [
  defineRoute("getDeliveryTrace", "get /api/v1/notifications/{id}/devices/{device}", {
    summary: "Read the delivery trace of a notification on one device",
    description:
      "Explains one delivery, as data and in sentences: the target that matches the device or why it got nothing, each attempt with the provider's response, the next attempt, and when the notification was opened. Targets are matched against the device as it is now.",
    access: project("read"),
    responses: { 200: { description: "The delivery trace", schema: dataOf(DeliveryTrace) } },
    errors: ["notification-gone"],
    handle: async ({ activities, sendRequest }, { caller, params: { id, device: deviceId } }) => {
      const { projectId } = caller;
      const trace = await sendRequest(deliveryRequests.trace, { projectId, notificationId: id, deviceId });
      const { activity } = trace.notification;
      const [explained, opens, record] = await Promise.all([
        sendRequest(audienceRequests.explain, { projectId, deviceId, ...audienceOfContent(trace.notification) }),
        sendRequest(openRequests.ofDevices, { projectId, notificationId: id, deviceIds: [deviceId] }),
        activity && activities.find({ projectId, id: activity.id }),
      ]);
      const channels = channelsFor({ ...trace, ...explained }, record);
      const matched = explained.matched === undefined ? undefined : targetFor(caller, explained.matched);
      return ok(deliveryTrace({ ...trace, ...explained, matched, channels, reported: reportedOf(opens, deviceId) }));
    },
  }),
  defineRoute("listDeviceNotifications", "get /api/v1/devices/{id}/notifications", {
    summary: "List the notifications of a device, newest first",
    description:
      "The timeline of a device: every notification that had the device in its audience, with its result there. The delivery trace explains one of them, and why the device did not get another. A page looks at a limited number of the project's large notifications: it may have fewer rows than `per_page`, so continue while `next` is not null. Notifications are kept for a limited time after their end.",
    access: project("read"),
    query: deliveryRequests.ofDevice.query,
    responses: { 200: { description: "A page of the timeline", schema: keysetPageOf(DeviceNotification) } },
    handle: async ({ sendRequest }, { caller: { projectId }, params, query }) => {
      const one = { projectId, deviceId: params.id };
      const [page] = await Promise.all([
        sendRequest(deliveryRequests.ofDevice, { ...one, page: keysetRequest(query) }),
        sendRequest(deviceRequests.get, one),
      ]);
      const notificationIds = page.data.map(({ notification }) => notification.id);
      const data = await withReported(
        page.data,
        ({ notification }) => notification.id,
        () => sendRequest(openRequests.ofNotifications, { ...one, notificationIds }),
      );
      return pageReply({ ...page, data });
    },
  }),
];
