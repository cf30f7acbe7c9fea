import {
  ChangeDeviceRequest,
  Device,
  EraseUser,
  GetUser,
  keysetPageOf,
  keysetQuery,
  ListNotifications,
  ListUsers,
  listQuery,
  Notification,
  notificationFilterQuery,
  pageOf,
  User,
  UserErasure,
  UserSummary,
} from "@herald/contracts";
import { z } from "zod";
import { project, projectOrDevice } from "../auth/caller.ts";
import { ownDevice } from "../auth/own-device.ts";
import { keysetRequest, pageReply, pageRequest } from "../http/page-reply.ts";
import { accepted, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { withOpensOfAll } from "./notification-routes.ts";
import { deviceParam, newUserParam, userParam } from "./path-params.ts";

const listUsers = defineRoute({
  method: "get",
  path: "/api/v1/users",
  operationId: "listUsers",
  tag: "Users",
  summary: "List users, by id",
  description:
    "The users who have devices. A page reads at most 1,000 devices: it may have fewer users than `per_page`, so continue while `next` is not null.",
  access: project("read"),
  query: z.strictObject(keysetQuery),
  responses: { 200: { description: "A page of users", schema: keysetPageOf(UserSummary) } },
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    return pageReply(request, await sendRequest(ListUsers, { projectId, page: keysetRequest(request.query) }));
  },
});

const getUser = defineRoute({
  method: "get",
  path: "/api/v1/users/{user}",
  operationId: "getUser",
  tag: "Users",
  summary: "Read a user's devices",
  description: "Herald knows users by their devices: a user without devices is a 404.",
  access: project("read"),
  params: { user: userParam },
  responses: { 200: { description: "The user", schema: z.object({ data: User }) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user } }) =>
    ok({ data: await sendRequest(GetUser, { projectId, userId: user }) }),
});

const listUserNotifications = defineRoute({
  method: "get",
  path: "/api/v1/users/{user}/notifications",
  operationId: "listUserNotifications",
  tag: "Users",
  summary: "List the notifications that name a user as a target",
  description:
    "Only those sent to `user:<id>`, not those that reached the user by topics, metadata or `all`. Oldest first, unless `sort` says otherwise.",
  access: project("read"),
  params: { user: userParam },
  query: z.strictObject({ ...listQuery, ...notificationFilterQuery }),
  responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
  handle: async (deps, request) => {
    const { projectId } = request.caller;
    const userId = request.params.user;
    const { status, kind, label, ...query } = request.query;
    const filter = { projectId, userId, status, kind, label };
    const page = await deps.sendRequest(ListNotifications, { ...filter, page: pageRequest(query) });
    return pageReply(request, { ...page, data: await withOpensOfAll(deps, projectId, page.data) });
  },
});

const identifyUserDevice = defineRoute({
  method: "put",
  path: "/api/v1/users/{user}/devices/{id}",
  operationId: "identifyUserDevice",
  tag: "Users",
  summary: "Assign a device to a user",
  description: "A device of another user moves to this one.",
  access: project("devices"),
  params: { user: newUserParam, id: deviceParam },
  responses: { 200: { description: "The changed device", schema: z.object({ data: Device }) } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user, id: deviceId } }) =>
    ok({ data: await sendRequest(ChangeDeviceRequest, { projectId, deviceId, change: { user_id: user } }) }),
});

const releaseUserDevice = defineRoute({
  method: "delete",
  path: "/api/v1/users/{user}/devices/{id}",
  operationId: "releaseUserDevice",
  tag: "Users",
  summary: "Remove a device from a user",
  description:
    "The device stays, without a user. A device that now belongs to another user is a 404 and does not change.",
  access: project("devices"),
  params: { user: userParam, id: deviceParam },
  responses: { 204: { description: "The device has no user" } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user, id: deviceId } }) => {
    await sendRequest(ChangeDeviceRequest, { projectId, deviceId, change: { user_id: null }, ofUser: user });
    return noContent();
  },
});

const logOut = defineRoute({
  method: "delete",
  path: "/api/v1/devices/{id}/user",
  operationId: "logOutDevice",
  tag: "Users",
  summary: "Log out the user of a device",
  description:
    "The device stays, without a user. To log in again it needs a user token that is newer than the last one it used.",
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  responses: { 204: { description: "The device has no user" } },
  errors: ["device-not-found"],
  handle: async ({ sendRequest }, { caller, params }) => {
    const deviceId = ownDevice(caller, params.id);
    await sendRequest(ChangeDeviceRequest, { projectId: caller.projectId, deviceId, change: { user_id: null } });
    return noContent();
  },
});

const eraseUser = defineRoute({
  method: "delete",
  path: "/api/v1/users/{user}",
  operationId: "eraseUser",
  tag: "Users",
  summary: "Erase a user",
  description:
    "Deletes the user's devices with their data, empties notifications for this user alone, and removes the user from all others, from the ledger and from webhook messages. Consumers get `io.herald.user.erased.v1`. Tokens issued before are refused. Erasing an unknown user is not an error: Herald may have known the user earlier.",
  access: project("devices"),
  params: { user: userParam },
  responses: { 202: { description: "The erasure has begun", schema: z.object({ data: UserErasure }) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { user } }) => {
    const { erasedAt } = await sendRequest(EraseUser, { projectId, userId: user });
    return accepted({
      data: {
        user_id: user,
        erased_at: erasedAt,
        databases: "within an hour" as const,
        streams: "within 30 days, as messages expire" as const,
        backups: "yours to delete: Herald has no access to them" as const,
      },
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
