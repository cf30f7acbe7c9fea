import {
  GetPreferences,
  Preferences,
  PutDevicePreferences,
  PutPreferences,
  PutUserPreferences,
} from "@herald/contracts";
import { ownDevice, ownUser, projectOrDevice, projectOrUser } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { deviceParam, newUserParam, userParam } from "./path-params.ts";

const OnePreferences = dataOf(Preferences);
const ofDevice =
  "A choice of the device and one of its user both count: a kind that either has switched off is not sent.";

const getDevicePreferences = defineRoute("getDevicePreferences", "get /api/v1/devices/{id}/preferences", {
  tag: "Devices",
  summary: "Read which kinds of notifications a device gets",
  description: `Lists every kind that the project declares. ${ofDevice}`,
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  responses: { 200: { description: "The kinds", schema: OnePreferences } },
  handle: async ({ sendRequest }, { caller, params }) => {
    const of = { device: ownDevice(caller, params.id) };
    return ok(await sendRequest(GetPreferences, { projectId: caller.projectId, of }));
  },
});

const putDevicePreferences = defineRoute("putDevicePreferences", "put /api/v1/devices/{id}/preferences", {
  tag: "Devices",
  summary: "Set which kinds of notifications a device gets",
  description: `Replaces the choices of the device. ${ofDevice} A kind that the project does not declare, and a critical one that is switched off, are refused.`,
  access: projectOrDevice("devices"),
  params: { id: deviceParam },
  body: PutDevicePreferences,
  responses: { 200: { description: "The kinds", schema: OnePreferences } },
  handle: async ({ sendRequest }, { caller, params, body: { preferences } }) => {
    const of = { device: ownDevice(caller, params.id) };
    return ok(await sendRequest(PutPreferences, { projectId: caller.projectId, of, preferences }));
  },
});

const getUserPreferences = defineRoute("getUserPreferences", "get /api/v1/users/{user}/preferences", {
  summary: "Read which kinds of notifications a user gets, and the user's quiet hours",
  description: "Also with the token of this user as `Bearer`. The user need not have a device.",
  access: projectOrUser("devices"),
  params: { user: userParam },
  responses: { 200: { description: "The kinds and hours", schema: OnePreferences } },
  handle: async ({ sendRequest }, { caller, params }) => {
    const of = { user: ownUser(caller, params.user) };
    return ok(await sendRequest(GetPreferences, { projectId: caller.projectId, of }));
  },
});

const putUserPreferences = defineRoute("putUserPreferences", "put /api/v1/users/{user}/preferences", {
  summary: "Set which kinds of notifications a user gets, and the user's quiet hours",
  description:
    "Replaces the choices of the user; they hold on all devices of the user, also on those that log in later. Also with the token of this user as `Bearer`. A kind that the project does not declare, and a critical one that is switched off, are refused.",
  access: projectOrUser("devices"),
  params: { user: newUserParam },
  body: PutUserPreferences,
  responses: { 200: { description: "The kinds and hours", schema: OnePreferences } },
  handle: async ({ sendRequest }, { caller, params, body: { preferences } }) => {
    const of = { user: ownUser(caller, params.user) };
    return ok(await sendRequest(PutPreferences, { projectId: caller.projectId, of, preferences }));
  },
});

export const preferenceRoutes = [getDevicePreferences, putDevicePreferences, getUserPreferences, putUserPreferences];
