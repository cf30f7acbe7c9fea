import { PutDevicePreferences, PutUserPreferences, preferenceRequests } from "@herald/contracts";
import { projectOrDevice, projectOrUser } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";

const ofDevice =
  "A choice of the device and one of its user both count: a kind that either has switched off is not sent.";

export const preferenceRoutes = [
  forwardRoute("getDevicePreferences", "get /api/v1/devices/{id}/preferences", {
    tag: "Devices",
    summary: "Read which kinds of notifications a device gets",
    description: `Lists every kind that the project declares. ${ofDevice}`,
    access: projectOrDevice("devices"),
    forward: preferenceRequests.get,
    add: ({ params }) => ({ of: { device: params.id } }),
    response: "The kinds",
  }),
  forwardRoute("putDevicePreferences", "put /api/v1/devices/{id}/preferences", {
    tag: "Devices",
    summary: "Set which kinds of notifications a device gets",
    description: `Replaces the choices of the device. ${ofDevice} A kind that the project does not declare, and a critical one that is switched off, are refused.`,
    access: projectOrDevice("devices"),
    body: PutDevicePreferences,
    forward: preferenceRequests.put,
    add: ({ params, body }) => ({ of: { device: params.id }, ...body }),
    response: "The kinds",
  }),
  forwardRoute("getUserPreferences", "get /api/v1/users/{user}/preferences", {
    summary: "Read which kinds of notifications a user gets, and the user's quiet hours",
    description: "Also with the token of this user as `Bearer`. The user need not have a device.",
    access: projectOrUser("devices"),
    forward: preferenceRequests.get,
    add: ({ params }) => ({ of: { user: params.user } }),
    response: "The kinds and hours",
  }),
  forwardRoute("putUserPreferences", "put /api/v1/users/{user}/preferences", {
    summary: "Set which kinds of notifications a user gets, and the user's quiet hours",
    description:
      "Replaces the choices of the user; they hold on all devices of the user, also on those that log in later. Also with the token of this user as `Bearer`. A kind that the project does not declare, and a critical one that is switched off, are refused.",
    access: projectOrUser("devices"),
    creates: "user",
    body: PutUserPreferences,
    forward: preferenceRequests.put,
    add: ({ params, body }) => ({ of: { user: params.user }, ...body }),
    response: "The kinds and hours",
  }),
];
