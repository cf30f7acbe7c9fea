import {
  deviceRequests,
  Notification,
  notificationRequests,
  pageOf,
  UserErasure,
  userRequests,
} from "@herald/contracts";
import { project, projectOrDevice } from "../auth/caller.ts";
import { deviceFor } from "../auth/shown-to.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { defineRoute } from "../http/route.ts";
import { listedNotifications } from "./notification-routes.ts";

export const userRoutes = [
  forwardRoute("listUsers", "get /api/v1/users", {
    summary: "List users, by id",
    description:
      "The users who have devices. A page reads at most 1,000 devices: it may have fewer users than `per_page`, so continue while `next` is not null.",
    access: project("read"),
    forward: userRequests.list,
    response: "A page of users",
  }),
  forwardRoute("getUser", "get /api/v1/users/{user}", {
    summary: "Read a user's devices",
    description: "Herald knows users by their devices: a user without devices is a 404.",
    access: project("read"),
    forward: userRequests.get,
    show: (user, { caller }) => ({ ...user, devices: user.devices.map(deviceFor(caller)) }),
    response: "The user",
  }),
  defineRoute("listUserNotifications", "get /api/v1/users/{user}/notifications", {
    summary: "List the notifications that name a user as a target",
    description:
      "Only those sent to `user:<id>`, not those that reached the user by topics, metadata or `all`. Oldest first, unless `sort` says otherwise.",
    access: project("read"),
    query: notificationRequests.list.query,
    responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
    handle: (deps, { caller, params: { user }, query }) => listedNotifications(deps, caller, query, user),
  }),
  forwardRoute("identifyUserDevice", "put /api/v1/users/{user}/devices/{id}", {
    summary: "Assign a device to a user",
    description: "A device of another user moves to this one.",
    access: project("devices"),
    creates: "user",
    forward: deviceRequests.change,
    add: ({ params: { user } }) => ({ change: { user_id: user } }),
    response: "The changed device",
  }),
  forwardRoute("releaseUserDevice", "delete /api/v1/users/{user}/devices/{id}", {
    summary: "Remove a device from a user",
    description:
      "The device stays, without a user. A device that now belongs to another user is a 404 and does not change.",
    access: project("devices"),
    forward: deviceRequests.change,
    add: ({ params: { user } }) => ({ change: { user_id: null }, ofUser: user }),
    status: 204,
    response: "The device has no user",
  }),
  forwardRoute("logOutDevice", "delete /api/v1/devices/{id}/user", {
    tag: "Users",
    summary: "Log out the user of a device",
    description:
      "The device stays, without a user. To log in again it needs a user token that is newer than the last one it used.",
    access: projectOrDevice("devices"),
    forward: deviceRequests.change,
    add: () => ({ change: { user_id: null } }),
    status: 204,
    response: "The device has no user",
  }),
  forwardRoute("eraseUser", "delete /api/v1/users/{user}", {
    summary: "Erase a user",
    description:
      "Deletes the user's devices with their data, empties notifications for this user alone, and removes the user from all others, from the ledger and from webhook messages. Consumers get `io.herald.user.erased.v1`. Tokens issued before are refused. Erasing an unknown user is not an error: Herald may have known the user earlier.",
    access: project("devices"),
    forward: userRequests.erase,
    status: 202,
    schema: UserErasure,
    show: ({ erasedAt }, { params: { user } }) => ({
      user_id: user,
      erased_at: erasedAt,
      databases: "within an hour" as const,
      streams: "within 30 days, as messages expire" as const,
      backups: "yours to delete: Herald has no access to them" as const,
    }),
    response: "The erasure has begun",
  }),
];
