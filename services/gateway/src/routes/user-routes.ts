import {
  ChangeDeviceRequest,
  Device,
  EraseUser,
  GetUser,
  keysetPageOf,
  keysetQuery,
  ListUsers,
  Notification,
  pageOf,
  User,
  UserErasure,
  UserIdPrefix,
  UserSummary,
} from "@herald/contracts";
import { z } from "zod";
import { ownDevice, project, projectOrDevice } from "../auth/caller.ts";
import { deviceFor } from "../auth/shown-to.ts";
import { accepted, keysetRequest, noContent, ok, pageReply } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { listedNotifications, NotificationListQuery } from "./notification-routes.ts";
import { deviceParam, newUserParam, userParam } from "./path-params.ts";

const listUsers = defineRoute("listUsers", "get /api/v1/users", {
  summary: "List users, by id",
  description:
    "The users who have devices. A page reads at most 1,000 devices: it may have fewer users than `per_page`, so continue while `next` is not null.",
  access: project("read"),
  query: z.strictObject({
    ...keysetQuery,
    prefix: UserIdPrefix.optional().meta({ description: "Only users whose id begins with this", examples: ["u_84"] }),
  }),
  responses: { 200: { description: "A page of users", schema: keysetPageOf(UserSummary) } },
  handle: async ({ sendRequest }, { caller: { projectId }, query }) =>
    pageReply(await sendRequest(ListUsers, { projectId, prefix: query.prefix, page: keysetRequest(query) })),
});

const getUser = defineRoute("getUser", "get /api/v1/users/{user}", {
  summary: "Read a user's devices",
  description: "Herald knows users by their devices: a user without devices is a 404.",
  access: project("read"),
  params: { user: userParam },
  responses: { 200: { description: "The user", schema: dataOf(User) } },
  handle: async ({ sendRequest }, { caller, params: { user } }) => {
    const found = await sendRequest(GetUser, { projectId: caller.projectId, userId: user });
    return ok({ ...found, devices: found.devices.map(deviceFor(caller)) });
  },
});

const listUserNotifications = defineRoute("listUserNotifications", "get /api/v1/users/{user}/notifications", {
  summary: "List the notifications that name a user as a target",
  description:
    "Only those sent to `user:<id>`, not those that reached the user by topics, metadata or `all`. Oldest first, unless `sort` says otherwise.",
  access: project("read"),
  params: { user: userParam },
  query: NotificationListQuery,
  responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
  handle: (deps, { caller, params: { user }, query }) => listedNotifications(deps, caller, query, user),
});

const identifyUserDevice = defineRoute("identifyUserDevice", "put /api/v1/users/{user}/devices/{id}", {
  summary: "Assign a device to a user",
  description: "A device of another user moves to this one.",
  access: project("devices"),
  params: { user: newUserParam, id: deviceParam },
  responses: { 200: { description: "The changed device", schema: dataOf(Device) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user, id: deviceId } }) =>
    ok(await sendRequest(ChangeDeviceRequest, { projectId, deviceId, change: { user_id: user } })),
});

const releaseUserDevice = defineRoute("releaseUserDevice", "delete /api/v1/users/{user}/devices/{id}", {
  summary: "Remove a device from a user",
  description:
    "The device stays, without a user. A device that now belongs to another user is a 404 and does not change.",
  access: project("devices"),
  params: { user: userParam, id: deviceParam },
  responses: { 204: { description: "The device has no user" } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user, id: deviceId } }) =>
    sendRequest(ChangeDeviceRequest, { projectId, deviceId, change: { user_id: null }, ofUser: user }).then(noContent),
});

const logOut = defineRoute("logOutDevice", "delete /api/v1/devices/{id}/user", {
  tag: "Users",
  summary: "Log out the user of a device",
  description:
    "The device stays, without a user. To log in again it needs a user token that is newer than the last one it used.",
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  responses: { 204: { description: "The device has no user" } },
  handle: async ({ sendRequest }, { caller, params }) => {
    const deviceId = ownDevice(caller, params.id);
    const { projectId } = caller;
    return sendRequest(ChangeDeviceRequest, { projectId, deviceId, change: { user_id: null } }).then(noContent);
  },
});

const eraseUser = defineRoute("eraseUser", "delete /api/v1/users/{user}", {
  summary: "Erase a user",
  description:
    "Deletes the user's devices with their data, empties notifications for this user alone, and removes the user from all others, from the ledger and from webhook messages. Consumers get `io.herald.user.erased.v1`. Tokens issued before are refused. Erasing an unknown user is not an error: Herald may have known the user earlier.",
  access: project("devices"),
  params: { user: userParam },
  responses: { 202: { description: "The erasure has begun", schema: dataOf(UserErasure) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user } }) => {
    const { erasedAt } = await sendRequest(EraseUser, { projectId, userId: user });
    return accepted({
      user_id: user,
      erased_at: erasedAt,
      databases: "within an hour" as const,
      streams: "within 30 days, as messages expire" as const,
      backups: "yours to delete: Herald has no access to them" as const,
    });
  },
});

export const userRoutes = [
  listUsers,
  getUser,
  listUserNotifications,
  identifyUserDevice,
  releaseUserDevice,
  logOut,
  eraseUser,
];
